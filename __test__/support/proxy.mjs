/**
 * A proxy on loopback that carries CONNECT to one port, whatever host was
 * asked for: so a name that no server knows leads to the simulator.
 *
 * `credentials` (`user:password`) are demanded where given. What it was asked
 * is kept; `answer` replaces what it says.
 */

import { createServer, connect as dial } from "node:net";

export async function startProxy(t, { port, credentials, answer } = {}) {
  const asked = [];
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket.on("close", () => sockets.delete(socket)).on("error", () => {}));
    let head = "";
    socket.on("data", function read(data) {
      head += data.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", read);
      const [line, ...headers] = head.split("\r\n");
      const value = headers.find((each) => /^proxy-authorization:/i.test(each));
      const shown = value?.replace(/^[^:]+:\s*Basic\s+/i, "");
      const given = shown === undefined ? undefined : Buffer.from(shown, "base64").toString();
      asked.push({ line, credentials: given, head });
      if (answer !== undefined) return socket.end(answer);
      if (credentials !== undefined && given !== credentials) {
        return socket.end(
          'HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm="p"\r\ncontent-length: 0\r\n\r\n',
        );
      }
      const onward = dial(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        socket.pipe(onward).pipe(socket);
      });
      sockets.add(onward.on("close", () => sockets.delete(onward)).on("error", () => {}));
      socket.on("close", () => onward.destroy());
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: server.address().port, url: `http://127.0.0.1:${server.address().port}`, asked };
}
