// Reads with If-Modified-Since, and what an answer says of its last change.
import { expect } from "vitest";
import { text, type Answer, type Ask, type Harness } from "./harness.ts";

export const stampOf = (answer: Answer): string => text(answer.headers["last-modified"]);
/** The HTTP-date of its second. */
export const second = (ms: number): string => new Date(ms).toUTCString();

export type Get = (
  path: string,
  since?: string,
  more?: Ask & { headers?: Record<string, string> },
) => Promise<Answer>;

export const getFrom =
  (http: () => Harness): Get =>
  (path, since, more = {}) =>
    http().ask({
      path,
      ...more,
      headers: { ...(since === undefined ? {} : { "if-modified-since": since }), ...more.headers },
    });

/** Last-Modified of an answer of a while ago. */
export const reading =
  (get: Get) =>
  async (path: string, admin?: boolean): Promise<string> => {
    const answer = await get(path, undefined, admin === undefined ? {} : { admin });
    expect([path, answer.status]).toEqual([path, 200]);
    return stampOf(answer);
  };
