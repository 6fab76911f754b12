/**
 * What `util.inspect`, and so `console.log`, shows of a handle: its kind, provider and id on one
 * line, for example `SandboxHandle <runloop dbx_1>`. Nothing of a handle is secret, but its
 * reference alone would fill a screen.
 */

const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/** Makes instances of a class inspect as its name with the provider and the id that `of` gives. */
export function inspectsAs<T extends object>(
  handle: { readonly name: string; readonly prototype: T },
  of: (value: T) => { readonly provider: string; readonly id: string },
): void {
  inspectsLike(handle, (value) => {
    const { provider, id } = of(value);
    return `${handle.name} <${provider} ${id}>`;
  });
}

/** Makes instances of a class inspect as the text that `show` gives; `inspect` shows a part with the same settings. */
export function inspectsLike<T extends object>(
  { prototype }: { readonly prototype: T },
  show: (value: T, inspect: (part: unknown) => string) => string,
): void {
  Object.defineProperty(prototype, INSPECT, {
    configurable: true,
    value(this: T, _depth: number, options: object, inspect: typeof import("node:util").inspect) {
      return show(this, (part) => inspect(part, options));
    },
  });
}
