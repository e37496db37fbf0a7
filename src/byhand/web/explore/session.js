/** The passes that are looked at: the one that the address asks for, and the one beside it. */
import { Failure, failureOf } from "../api.js";
import { Data } from "./data.js";
import { Fetched } from "./fetched.js";
import { Pass, tailOf } from "./pass.js";
import { S, first, now, place, readPlace, usual } from "./state.js";
import { Server } from "./server.js";
import { Still, isStill } from "./still.js";
import { cellTop, page, write } from "./navigate.js";
import { ranked } from "./drawing.js";

/** @type {{server: Server | Still, fetched: Fetched, isLoading: boolean, failure: Failure | null}} */
export const session = { server: isStill ? new Still() : new Server(), fetched: new Fetched(() => page.draw()), isLoading: false, failure: null };
const RENEWED = 3000; // milliseconds within which a pass that is gone again is not asked for again
let turn = 0, shownQuestion = "", waiting = "", renewed = 0; // waiting: the question whose pass is on its way
let onward = stay; // when that is there

const question = () => JSON.stringify([S.prompt, S.next, S.changes, S.vs]);

/** @param {boolean} isOther */
function asked(isOther) {
  const text = isOther && S.vs.startsWith("p:") ? { prompt: S.vs.slice(2) } : S.prompt === null ? {} : { prompt: S.prompt, next: S.next };
  return isOther || !S.changes.length ? text : { ...text, changes: S.changes };
}

/** @param {boolean} isOther */
async function begin(isOther) {
  if (isOther && S.vs === "theirs") return null; // no pass, but arrays
  const pass = new Pass(await session.server.pass(asked(isOther))), data = new Data(session.server, pass, session.fetched);
  return { pass, data };
}

/** Fetch what every view of a pass needs. @param {{pass: Pass, data: Data}} made */
async function prepare({ pass, data }) {
  const logits = data.matrix("logits", false);
  data.equations();
  logits.row(pass.last);
  const needed = [`${pass.id}/logits/`, `${pass.id}/equations?`]; // a slow answer of the same pass is not waited for
  await session.fetched.settled((key) => needed.some((begin) => key.startsWith(begin)));
  const row = logits.row(pass.last);
  if (!row) throw session.fetched.failure ?? new Failure("lost");
  pass.likeliest = ranked(row)[0];
}

/** Leave the run that trains here for the model that the address names. */
export function leaveTraining() {
  if (now.pass.isTrained) shownQuestion = "";
  else if (!session.isLoading) return;
  else if (!waiting) return void ([turn, session.isLoading] = [turn + 1, false]);
  load(waiting ? onward : stay);
}

/**
 * Show a pass of the run that trains here, which no address names: the last one that was asked for, where one is by then.
 * @param {() => Promise<import("./server.js").PassData | null>} asks @param {{name: string, index: number[]}} [to]  a place instead
 */
export async function present(asks, to) {
  const mine = ++turn;
  session.isLoading = true;
  page.draw();
  try {
    const summary = await asks();
    if (mine !== turn) return;
    if (!summary) return void (waiting && load(onward)); // the run said no: on with what it overtook
    const pass = new Pass(summary), data = new Data(session.server, pass, session.fetched);
    pass.isTrained = true;
    await prepare({ pass, data });
    if (mine !== turn) return;
    const { back } = S, { name, index } = to ?? { name: S.at, index: S.i }, isNew = pass.model.name !== now.pass.model.name;
    Object.assign(now, { pass, data, other: null, otherData: null, baseData: null });
    stay(name, isNew && !pass.isParameter(pass.updated(name) || name) ? [] : index, back && !pass.updated(name), isNew ? pass.start : S.t);
  } catch (why) {
    if (mine === turn) session.failure = failureOf(why);
  } finally {
    if (mine === turn) [session.isLoading, waiting] = [false, ""];
    page.draw(true);
  }
}

/** Compute what the address asks for; until it has come, what was shown stays. @param {() => void} [then]  when it is there */
export async function load(then = readPlace) {
  const asks = question();
  if (now.pass && asks === shownQuestion) {
    if (waiting) [turn, session.isLoading, waiting] = [turn + 1, false, ""]; // it was taken back before its pass came
    then();
    return page.draw(true);
  }
  const mine = ++turn;
  [session.isLoading, waiting, onward] = [true, asks, then];
  page.draw();
  try {
    const [{ pass, data }, other] = await Promise.all([begin(false), S.vs ? begin(true) : null]);
    await prepare({ pass, data });
    if (mine !== turn) return;
    const as = (id) => Object.assign(Object.create(Object.getPrototypeOf(pass)), pass, { id });
    const base = pass.data.base ? new Data(session.server, as(pass.data.base), session.fetched) : null;
    const theirs = S.vs === "theirs" && pass.data.theirs ? as("theirs") : null;
    Object.assign(now, { pass, data, other: other?.pass ?? theirs, otherData: other?.data ?? null, baseData: base });
    [session.failure, shownQuestion] = [null, asks];
    then();
  } catch (why) {
    if (mine !== turn) return;
    session.failure = failureOf(why);
    session.fetched.failure = null;
    if (now.pass && shownQuestion) { // what is shown stays, and so does its address
      [S.prompt, S.next, S.changes, S.vs] = JSON.parse(shownQuestion);
      write(false);
    }
  } finally {
    if (mine === turn) [session.isLoading, waiting] = [false, ""];
    page.draw(true);
  }
}

/** Change what is asked for. @param {Partial<typeof S>} to @param {boolean} [push]  as a place to come back to */
export function ask(to, push = true) {
  Object.assign(S, to);
  if ("changes" in to) page.steady = cellTop(); // the slider stays under the pointer
  const before = now.pass;
  return load(() => { // where one is by then
    const { pass } = now, { t } = S, i = [...S.i];
    if ("prompt" in to) {
      S.t = t === before.start ? pass.start : t === before.last ? pass.last : Math.min(t, pass.last);
      S.tok = usual(S.t);
      if (before.isAlongText(S.at)) i[i.length - 2] = S.t;
    }
    if (!now.other && S.metric === "differs") S.metric = "size";
    keepPlace(S.at, i, S.back);
    write(push);
  });
}

/** Stand in the pass of another model, whose text, tokens and heads may be fewer. */
function stay(at = S.at, i = S.i, back = S.back, t = S.t) {
  const { last, heads } = now.pass, [block, head] = S.head;
  Object.assign(S, { t: Math.min(t, last), against: null, head: [block, Math.min(head, heads - 1)] });
  S.tok = usual(S.t);
  keepPlace(at, i, back);
}
/** @param {string} at @param {number[]} i @param {boolean} back */
function keepPlace(at, i, back) {
  const { pass } = now, alike = `blocks.${pass.model.layers - 1}.${tailOf(at)}`, name = [at, alike].find((each) => pass.has(each)) ?? first();
  const fits = name === at && pass.shape(at).length === i.length && i.every((n, axis) => n < pass.shape(at)[axis]);
  place({ name, index: fits ? i : [], back });
}

/** The server may have been started anew, or have let the pass go: ask for it again, then for what failed. */
export async function retry() {
  try {
    if (!now.pass) return await load();
    const mine = turn, hasOther = S.vs !== "" && S.vs !== "theirs";
    const [pass, other] = await Promise.all([session.server.pass(asked(false)), hasOther ? session.server.pass(asked(true)) : null]);
    if (mine !== turn) return;
    if (pass.id !== now.pass.id || (other && other.id !== now.other?.id)) { // another model is served now
      shownQuestion = "";
      return await load(stay);
    }
    session.failure = null;
    session.fetched.retry();
  } catch (why) {
    session.failure = failureOf(why);
    page.draw();
  }
}

/** Ask for a pass that the server no longer keeps. */
export function renew() {
  if (session.fetched.failure?.status !== 404 || performance.now() - renewed < RENEWED) return;
  renewed = performance.now();
  session.fetched.failure = null;
  retry();
}

/** @param {string} key */
export function unlock(key) {
  session.server.unlock(key);
  return now.pass ? retry() : load();
}
