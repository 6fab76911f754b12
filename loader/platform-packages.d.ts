// Type checks of the loader know the platform packages by this alone; none is installed in a checkout.
declare module "@beachside/runloop-*" {
  const binding: typeof import("../binding.js");
  export = binding;
}
