// graphile-worker: its own worker works off a full table, one job at a time or by its local queue.
// Usage: graphile_peer.mjs DSN     an empty database; asked line by line as serve.py tells
import readline from "node:readline";
import { run, makeWorkerUtils, Logger } from "graphile-worker";
import pg from "pg";

const connectionString = process.argv[2];
const logger = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString });
const JOBS = "graphile_worker._private_jobs";
const LARGE = { concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();

const left = async () => +(await pool.query(`SELECT count(*) FROM ${JOBS}`)).rows[0].count;
const start = (settings, noop) =>
  run({ preset: { worker: { connectionString, ...settings } }, logger, noHandleSignals: true, taskList: { noop } });

async function fill(count) {
  await pool.query(
    `SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg(json_populate_record(
       null::graphile_worker.job_spec, json_build_object('identifier', 'noop', 'payload', json_build_object('k', i))))
     FROM generate_series(1, $1::int) AS i))`, [count]);
}

// From the first job's start to the last one's end in the table: the start of a worker is left out.
async function drain(count, settings) {
  await fill(count);
  let begun = 0, handled = 0;
  const runner = await start(settings, async () => { if (!handled++) begun = performance.now(); });
  while (handled < count) await wait(1);
  while (await left()) await wait(1);
  const seconds = (performance.now() - begun) / 1e3;
  await runner.stop();
  return { per_s: count / seconds };
}

// A holder whose lock is older than the four hours after which it is taken away ends its job.
async function stale() {
  await fill(1);
  const ends = {};
  const holder = (name) => () => new Promise((end) => { ends[name] = end; });
  const quick = { concurrentJobs: 1, pollInterval: 200, minResetLockedInterval: 300, maxResetLockedInterval: 400 };
  const first = await start(quick, holder("first"));
  while (!ends.first) await wait(20);
  await pool.query(`UPDATE ${JOBS} SET locked_at = now() - interval '5 hours'`);
  const second = await start(quick, holder("second"));
  for (let n = 0; n < 500 && !ends.second; n++) await wait(20);
  if (!ends.second) throw new Error("nobody took it over");
  ends.first();
  await wait(800);
  const completion = (await left()) === 0;
  ends.second();
  await Promise.all([first.stop(), second.stop()]);
  return { completion, renewal: null };
}

const calls = {
  one: ({ count }) => drain(count, { concurrentJobs: 1 }),
  batch: ({ count }) => drain(count, LARGE),
  stale,
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer;
  try { answer = await calls[asked.call](asked.arguments); } catch (why) { answer = { failed: String(why).slice(0, 200) }; }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
process.exit(0);
