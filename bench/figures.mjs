/** Figures of a run: their medians, and how they are shown. */

import { median } from "./measures.mjs";

/** The median of a figure; not a number where the contender has none. */
export function of(row, figures, name) {
  const values = (figures ?? []).map((each) => row.show[name](each, row.job));
  return values.length === 0 ? Number.NaN : median(values);
}

export function round(value) {
  if (!Number.isFinite(value)) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString("en");
}
