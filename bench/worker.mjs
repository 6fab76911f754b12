/** One measurement of one contender, in a process of its own: `worker.mjs CONTENDER JOB`. */

import { contenders } from "./contenders.mjs";
import { measures } from "./measures.mjs";

const [name, text] = process.argv.slice(2);
const job = JSON.parse(text);
const contender = await contenders[name](job);
const figures = await measures[job.measure](contender, job);
console.log(JSON.stringify(figures));
// Idle connections of a contender must not hold the bench up.
process.exit();
