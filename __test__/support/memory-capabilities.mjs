/** What the in-memory provider can do, and how a test changes it. */

const yes = (value) => ({ status: "supported", ...(value === undefined ? {} : { value }) });
const no = (reason = "The in-memory provider has none.") => ({ status: "unsupported", reason });

export function memoryCapabilities(changes = {}) {
  const tree = {
    sandboxes: {
      create: { ...yes(), options: ["env", "lifecycle", "network", "mounts", "labels", "region"] },
      list: yes(),
      suspend: yes(),
      resume: yes(),
      renew: no(),
      terminal: no(),
      labels: yes(),
      regions: yes(),
      fork: no(),
    },
    exec: { run: yes({ maxTimeoutSeconds: 3600, maxOutputBytes: 1048576 }), callbacks: no() },
    processes: { stream: yes(), bytes: no(), stdin: no(), reopen: yes(), kill: yes() },
    files: {
      read: yes({ maxBytes: 67108864 }),
      write: yes({ maxBytes: 67108864 }),
      writeNew: no(),
      list: no(),
      mkdir: no(),
      remove: no(),
      rename: no(),
    },
    images: { prepared: yes(), oci: no(), build: no() },
    network: { blocked: yes(), internet: yes(), allow: no() },
    previews: { open: yes({ access: "protected" }) },
    snapshots: {
      capture: yes({
        preserve: "filesystem",
        interruption: "pause",
        sourceAfter: "running",
        retentionSeconds: null,
        labels: true,
      }),
      restore: {
        ...yes({ execution: "fresh", lifecycle: "independent", mountInput: "specs" }),
        options: ["env", "lifecycle", "labels", "mounts"],
      },
      list: yes(),
      delete: yes(),
    },
    volumes: {
      create: yes(),
      get: yes(),
      list: yes(),
      delete: yes(),
      mount: yes({
        subpath: true,
        readOnly: true,
        durability: "unconfirmed",
        reservedPaths: ["/", "/proc", "/sys", "/dev", "/tmp"],
      }),
    },
    recovery: { sandboxes: yes(), snapshots: yes() },
  };
  for (const [feature, leaf] of Object.entries(changes)) {
    const [area, name] = feature.split(".");
    const old = tree[area][name];
    tree[area][name] =
      leaf.status === undefined
        ? { ...old, ...leaf, ...(leaf.value ? { value: { ...old.value, ...leaf.value } } : {}) }
        : leaf;
  }
  return tree;
}
