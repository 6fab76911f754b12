/**
 * What people who come from other libraries write, and what it is called here.
 * Only messages are made of it: nothing here makes a wrong call right.
 */

/** Our options, and the names that the same thing has elsewhere, without case and separators. */
const OTHER_NAMES: { readonly [ours: string]: readonly string[] } = {
  command: ["cmd", "argv", "program", "script"],
  cwd: ["workdir", "workingdirectory", "workingdir", "directory", "dir"],
  env: ["envs", "envvars", "environment", "environmentvariables"],
  stdin: ["input"],
  timeoutSeconds: ["timeout", "timeoutms", "timeoutmillis", "requesttimeoutms", "deadline"],
  lifetimeSeconds: ["timeout", "timeoutms", "lifetime", "ttl", "duration"],
  intervalSeconds: ["interval", "intervalms", "pollinterval"],
  maxOutputBytes: ["maxbuffer"],
  check: ["reject", "throw", "throwonerror"],
  signal: ["abortsignal", "cancelsignal", "abort", "cancel"],
  limit: ["pagesize", "perpage", "max", "maxresults", "take"],
  cursor: ["after", "startingafter", "pagetoken", "nexttoken", "page", "offset"],
  labels: ["metadata", "tags"],
  mounts: ["volumes"],
  overwrite: ["force"],
  mode: ["permissions", "chmod"],
};

const SECONDS = /Seconds$/;

const ARRAY = 'a program with its arguments is one array: ["echo", "hi"]';
const LIFETIME = "write lifecycle: { lifetimeSeconds }, in seconds";
const SETTING = "it is a setting of the connection, given when it is made";
const CREDENTIAL = "it stands in credentials: { … }";
const CONFIG = "it stands in config: { … }";
const BOUND = "give it to the adapter, which has its settings bound";

const NEW_SANDBOX = {
  ...each(["timeout", "timeoutms", "lifetimeseconds", "lifetime", "ttl", "sleepafter"], LIFETIME),
  ...each(["keepalivetimeseconds", "autostopinterval", "idletimeout"], LIFETIME),
  ...each(["image", "template", "templateid", "blueprint", "blueprintname"], SETTING),
  ...each(["resources", "cpu", "cpus", "vcpus", "memory", "memorymib", "size"], SETTING),
  ...each(["preview", "idleseconds", "timeouts"], SETTING),
  ...each(["ports", "port"], "none is declared: preview(port) gives the address of any port"),
  ...each(["snapshot", "snapshotid", "from"], "restore() of a snapshot makes a sandbox from it"),
  ...each(["name", "id"], "a sandbox has no name here: keep box.reference to find it again"),
};

/** By call, what no option of it does, and what does. */
const OTHER_WAYS: { readonly [call: string]: { readonly [theirs: string]: string } } = {
  exec: {
    ...each(["args", "arguments"], ARRAY),
    ...each(["background", "detached", "detach", "stream"], "processes.start() does that"),
    ...each(["shell"], "a string is shell text, an array is not"),
    ...each(["user", "uid", "sudo"], "no call chooses the user; use su or sudo in the command"),
    ...each(["encoding", "text"], "the result has bytes, and text by stdoutText()"),
  },
  "processes.start": {
    ...each(["args", "arguments"], ARRAY),
    ...each(
      ["timeout", "timeoutms", "timeoutseconds"],
      "a process has no deadline; kill() or terminate() ends it",
    ),
    ...each(
      ["onstdout", "onstderr", "onoutput", "ondata"],
      "read process.stdout, process.stderr or process.output",
    ),
    ...each(["background", "detached", "detach"], "a process is in the background anyway"),
    ...each(["user", "uid", "sudo"], "no call chooses the user; use su or sudo in the command"),
  },
  create: NEW_SANDBOX,
  restore: NEW_SANDBOX,
  readFile: each(["encoding", "format"], "readTextFile() gives text"),
  writeFile: each(["encoding", "format"], "a string is written as UTF-8"),
  snapshot: each(["name", "description"], "a snapshot has no name here; labels describe it"),
  connect: {
    ...each(["apikey", "token", "baseurl", "tunneldomain"], CREDENTIAL),
    ...each(["network", "image", "resources", "lifecycle", "preview", "timeouts"], CONFIG),
    ...each(["config", "credentials"], BOUND),
  },
};

/** By call, what to write where its options are something else than a record. */
const NO_RECORD: { readonly [call: string]: string } = {
  exec: ARRAY,
  "processes.start": 'write { command: ["echo", "hi"] }',
  create: "the image is a setting of the connection",
  readFile: "readTextFile() gives text",
  connect: "connect({ adapter, credentials }), or an adapter with both bound",
};

/** What to write instead of an unknown option, where something is known. */
export function otherWay(
  call: string | undefined,
  theirs: string,
  known: readonly string[],
): string | undefined {
  const plain = theirs.toLowerCase().replace(/[_-]/g, "");
  const ways = call === undefined ? undefined : OTHER_WAYS[call];
  if (ways !== undefined && Object.hasOwn(ways, plain)) return ways[plain];
  const ours = known.find((name) => OTHER_NAMES[name]?.includes(plain));
  if (ours === undefined) return undefined;
  return `did you mean "${ours}"${SECONDS.test(ours) ? ", in seconds" : ""}?`;
}

/** What to write where options of another type were given. */
export function recordInstead(call: string): string | undefined {
  return NO_RECORD[call];
}

function each(names: readonly string[], way: string): { readonly [theirs: string]: string } {
  return Object.fromEntries(names.map((name) => [name, way]));
}
