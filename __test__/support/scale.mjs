/**
 * How much of the repeated work runs, and from which seed.
 *
 * TEST_SCALE multiplies counts: 1 in `make test`, more in `make soak`
 * (scripts/soak.mjs says how much for which part). TEST_SEED replaces the seed
 * of everything random.
 */

const scale = Number(process.env.TEST_SCALE ?? 1);
if (!(scale > 0)) throw new Error(`TEST_SCALE must be a positive number, not ${scale}`);

/** Whether counts and waits are those of `make soak`. */
export const soak = scale > 1;

/** Repetitions: `count` in `make test`; never none. */
export const times = (count) => Math.max(1, Math.ceil(count * scale));

/** The seed of a test: its own, or TEST_SEED. */
export const seedOf = (own) => Number(process.env.TEST_SEED ?? own) >>> 0;

/** Numbers in [0, 1) from a seed; the same seed gives the same numbers. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
