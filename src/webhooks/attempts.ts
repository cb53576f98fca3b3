// Attempts at claimed deliveries: each posts one event to one endpoint, holds a slot of the endpoint's queue, and ends in a
// result (results.ts). What is posted: post.ts.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { DueDelivery } from "../model/webhook-delivery.ts";
import type { Endpoint } from "../model/webhook.ts";
import type { Turns } from "../fairness/turns.ts";
import type { Came, EndpointQueue, EndpointQueues } from "./endpoint-queues.ts";
import type { Answer, Post } from "./post.ts";
import { resultOf, type Finished } from "./results.ts";
import { maxAttempts } from "./schedule.ts";
import type { Work } from "./work.ts";

export interface DeliveryAttempts {
  /** Starts an attempt at a delivery that was claimed; one whose event is in flight already only takes its number. */
  start(queue: EndpointQueue, endpoint: Endpoint, delivery: DueDelivery): void;
  /** Connections are closed under the attempts that run: from now on a failure proves nothing. */
  cutShort(): void;
}

export interface DeliveryAttemptsDeps {
  queues: EndpointQueues;
  post: Post;
  /** When an account's next attempt may begin. */
  turns: Turns;
  scheduleMs: readonly number[];
  clock: Clock;
  /** Milliseconds since the epoch, by a clock that never goes back. */
  time(): number;
  log: Log;
  work: Work;
  onSlotFree(queue: EndpointQueue): void;
  /** A fault of this program. */
  onFault(queue: EndpointQueue, delivery: DueDelivery, error: unknown): void;
  onFinished(finished: Finished): void;
  /** An attempt ended, and came to this. */
  onAttempt?(endpoint: Endpoint, result: Finished["result"]["result"]["kind"]): void;
}

/** An attempt without an answer, or at a failing endpoint, keeps its slot for so long: a dead one refuses at once, and each attempt is written. */
const slotRestMs = 500;

export function createDeliveryAttempts(deps: DeliveryAttemptsDeps): DeliveryAttempts {
  const { queues, post, turns, scheduleMs, time, log } = deps;
  let cutShort = false;

  const attempt = async (queue: EndpointQueue, endpoint: Endpoint, delivery: DueDelivery): Promise<Came> => {
    await new Promise<void>((begin) => turns(queue.accountKey, begin));
    const event = { id: delivery.eventId, body: delivery.body };
    const connect = () => queues.connect(queue, endpoint);
    const answer = await post.post(connect, endpoint, event, delivery.attempt);
    // An attempt that was cut short proves nothing: the next start takes it back, and it is made again.
    if (answer.delivered || !cutShort) finish(queue, endpoint, delivery, answer);
    if (answer.delivered) return "delivered";
    return answer.status === null ? "unanswered" : "refused";
  };

  const finish = (queue: EndpointQueue, endpoint: Endpoint, delivery: DueDelivery, answer: Answer): void => {
    const now = time();
    const body = answer.body !== null && queues.mayKeepAnswer(queue, now) ? answer.body : null;
    const finished = resultOf(endpoint, delivery, { ...answer, body }, now, scheduleMs);
    const { status, failure } = answer;
    const fields = {
      endpoint: endpoint.id,
      event: delivery.eventId,
      attempt: delivery.attempt,
      status,
      failure,
    };
    if (finished.letter !== null) log.warn(fields, "webhook dead-lettered");
    else if (!answer.delivered) log.debug(fields, "webhook attempt failed");
    deps.onAttempt?.(endpoint, finished.result.result.kind);
    deps.onFinished(finished);
  };

  const ended = (queue: EndpointQueue, delivery: DueDelivery, came: Came): void => {
    const free = (): void => {
      queues.take(queue, -1);
      deps.onSlotFree(queue);
    };
    queue.flights.delete(delivery.eventSeq);
    const rests = queues.ended(queue, came, time());
    if (!rests || !deps.work.running()) return free();
    queue.cooling += 1;
    deps.clock.after(slotRestMs, () => {
      queue.cooling -= 1;
      free();
    });
  };

  return {
    start(queue, endpoint, delivery) {
      const flight = queue.flights.get(delivery.eventSeq);
      if (flight !== undefined) {
        flight.attempt = delivery.attempt;
        return;
      }
      const current = { ...delivery };
      if (current.attempt > maxAttempts(scheduleMs)) return finish(queue, endpoint, current, interrupted);
      queue.flights.set(current.eventSeq, current);
      queue.usedAt = time();
      queues.take(queue, 1);
      deps.work.track(
        attempt(queue, endpoint, current)
          .catch((error: unknown): Came => {
            deps.onFault(queue, current, error);
            return "fault";
          })
          .then((came) => ended(queue, current, came)),
      );
    },
    cutShort: () => void (cutShort = true),
  };
}

const interrupted: Answer = {
  delivered: false,
  status: null,
  durationMs: 0,
  failure: "the last attempt was interrupted",
  body: null,
};
