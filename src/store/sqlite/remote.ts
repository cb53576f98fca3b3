// Functions that run in a thread of the store, called from the loop by name: what a table there has, typed as promises.

/** The functions of `Table`, each called with its one argument and the bytes that go with it. */
export type Remote<Table> = {
  readonly [K in keyof Table]: Table[K] extends (arg: infer Arg, ...rest: never[]) => infer Result
    ? (arg: Arg, blobs?: readonly Uint8Array[]) => Promise<Result>
    : never;
};

/** `call` hands a name and its argument over. */
export function remote<Table>(
  call: (name: string, arg: unknown, blobs?: readonly Uint8Array[]) => Promise<unknown>,
): Remote<Table> {
  const get = (_of: object, name: string) => (arg: unknown, blobs?: readonly Uint8Array[]) =>
    call(name, arg, blobs);
  return new Proxy({}, { get }) as Remote<Table>;
}
