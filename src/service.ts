// What runs for as long as the program does. daemon.ts starts them in order and
// stops them in reverse.
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  /** Finishes what is in flight and lets go of every handle. */
  stop(): Promise<void>;
}
