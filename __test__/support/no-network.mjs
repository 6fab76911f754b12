/** Loaded before a program: makes every network module of JavaScript throw. */

import dgram from "node:dgram";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import tls from "node:tls";

for (const [name, module] of Object.entries({ http, https, http2, net, tls, dgram })) {
  for (const key of ["request", "get", "connect", "createConnection", "createSocket"]) {
    if (typeof module[key] !== "function") continue;
    module[key] = () => {
      throw new Error(`${name}.${key} was called`);
    };
  }
}
// Not the class itself: standard output is a socket where it is a pipe.
net.Socket.prototype.connect = () => {
  throw new Error("net.Socket.connect was called");
};
syncBuiltinESMExports();
for (const name of ["fetch", "WebSocket", "EventSource", "XMLHttpRequest"]) {
  globalThis[name] = () => {
    throw new Error(`${name} was called`);
  };
}
