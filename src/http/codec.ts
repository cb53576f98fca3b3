// What stands between a resource's schema and the records of the modules below: the API's names are in snake case and
// its times ISO 8601 text, a record's are camelCase and milliseconds. Both directions derive from the schema, so that a
// field is written down once, in its schema. A field whose form differs in more than that names its transformation.
// The compiler checks a record against the schema: a field that no record has, and that has no transformation, is an error.
import { z } from "zod";
import { isoTimeOrNull } from "../clock.ts";

/** `createdAt` of `created_at`. */
type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name;

/** A field as it is in a record. */
type RecordField<Field> =
  Field extends z.ZodNullable<infer Of>
    ? RecordField<Of> | null
    : Field extends z.ZodISODateTime
      ? number
      : z.input<Field>;

type Transformations<Shape extends z.core.$ZodLooseShape> = {
  // `never`: each names the record and the context that it needs.
  readonly [Name in keyof Shape]?: (record: never, context: never) => z.input<Shape[Name]>;
};

/** The members that a view reads under the names of its fields. */
type Fields<Shape extends z.core.$ZodLooseShape, Own> = {
  readonly [Name in Exclude<keyof Shape & string, keyof Own> as Camel<Name>]: RecordField<Shape[Name]>;
};

/** What all transformations together ask of the record, and of the context. */
type RecordOf<Own> = [Own[keyof Own]] extends [(record: infer Of, context: never) => unknown] ? Of : unknown;
type ContextOf<Own> = [Own[keyof Own]] extends [(record: never, context: infer Of) => unknown] ? Of : unknown;

type View<Shape extends z.core.$ZodLooseShape, Own> = (
  record: Fields<Shape, Own> & RecordOf<Own>,
  ...context: unknown extends ContextOf<Own> ? [] : [ContextOf<Own>]
) => z.input<z.ZodObject<Shape>>;

/** Makes the function that shows a record as the schema says, its members in the schema's order. */
export function viewOf<
  Shape extends z.core.$ZodLooseShape,
  const Own extends Transformations<Shape> = Record<never, never>,
>(schema: z.ZodObject<Shape>, own?: Own): View<Shape, Own> {
  const transformations: Record<string, unknown> = { ...own };
  const members = Object.entries(schema.shape).map(([name, field]) => {
    const [key, member] = [JSON.stringify(name), JSON.stringify(camelCase(name))];
    if (Object.hasOwn(transformations, name)) return `${key}: own[${key}](record, context)`;
    return isTime(field) ? `${key}: isoTimeOrNull(record[${member}])` : `${key}: record[${member}]`;
  });
  // Compiled, as zod compiles its parsers: a loop over names takes twice as long, for every row of every answer. The text
  // has names of fields from our own schemas, and nothing from outside.
  // oxlint-disable-next-line typescript/no-implied-eval
  const make = new Function("own", "isoTimeOrNull", `return (record, context) => ({${members.join()}})`);
  return make(transformations, isoTimeOrNull) as View<Shape, Own>;
}

/** By a field's name: that of the record's member, where it is another one; null: it is not a member. */
type Names<Shape extends z.core.$ZodLooseShape> = { readonly [Name in keyof Shape]?: string | null };

type MemberOf<Name, Own> = Name extends keyof Own
  ? Own[Name] extends string
    ? Own[Name]
    : never
  : Name extends string
    ? Camel<Name>
    : never;

type Input<Given, Own> = { [Name in keyof Given as MemberOf<Name, Own>]: Exclude<Given[Name], undefined> };

/** Makes the function that turns a body or query, as its schema gave it, into the module's input. What is left out stays out. */
export function inputOf<
  Shape extends z.core.$ZodLooseShape,
  const Own extends Names<Shape> = Record<never, never>,
>(
  schema: z.ZodObject<Shape>,
  names?: Own,
): (given: z.output<z.ZodObject<Shape>>) => Input<z.output<z.ZodObject<Shape>>, Own> {
  type Given = z.output<z.ZodObject<Shape>>;
  const own: Record<string, string | null | undefined> = { ...names };
  const fields = Object.keys(schema.shape).flatMap((name): [string, string][] => {
    const member = own[name];
    return member === null ? [] : [[name, member ?? camelCase(name)]];
  });
  return (given: Given) => {
    const input: Record<string, unknown> = {};
    for (const [name, member] of fields) {
      const value = (given as Record<string, unknown>)[name];
      if (value !== undefined) input[member] = value;
    }
    return input as Input<Given, Own>;
  };
}

function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function isTime(field: unknown): boolean {
  return field instanceof z.ZodNullable ? isTime(field.unwrap()) : field instanceof z.ZodISODateTime;
}
