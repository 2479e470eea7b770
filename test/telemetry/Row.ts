/**
 * A span as every store of traces gives it back, whichever: what the laws of traces are stated over.
 */

/** **Units**: nanoseconds since 1970; a store may round them. */
export interface Row {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: string
  readonly startNanos: bigint
  readonly endNanos: bigint
  readonly attributes: Readonly<Record<string, unknown>>
  readonly events: ReadonlyArray<{ readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }>
  readonly links: ReadonlyArray<{
    readonly traceId: string
    readonly spanId: string
    readonly attributes: Readonly<Record<string, unknown>>
  }>
  readonly status: { readonly code: "unset" | "ok" | "error"; readonly message: string }
}

/** Whether Bursar wrote it: others may write into the same traces. */
export const isOurs = ({ name, attributes }: Row): boolean =>
  name.startsWith("bursar.") || "bursar.schema" in attributes || "bursar.run.id" in attributes

export const idOf = ({ traceId, spanId }: { readonly traceId: string; readonly spanId: string }): string =>
  `${traceId} ${spanId}`

/** Rows by trace, in the order in which they start; one that lasts longer comes first. */
export const byTrace = (rows: ReadonlyArray<Row>): ReadonlyMap<string, ReadonlyArray<Row>> =>
  Map.groupBy(rows, ({ traceId }) => traceId)

/** The span that a span belongs under: its parent, or, where it goes on in another trace, the one that it is linked to. */
export const aboveOf = (rows: ReadonlyArray<Row>): ((row: Row) => Row | undefined) => {
  const byId = new Map(rows.map((row) => [idOf(row), row]))
  return (row) => {
    const parent = row.parentId === undefined ? undefined : byId.get(`${row.traceId} ${row.parentId}`)
    if (parent?.name !== "bursar.continuation") return parent
    const link = row.links.find(({ attributes }) => attributes["bursar.link"] === "continues")
    return link === undefined ? undefined : byId.get(idOf(link))
  }
}

/** What a trace says, without what differs from run to run: ids, times and the numbers of the process. */
export const shapeOf = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const below = new Map<string, Array<Row>>()
  for (const row of rows) {
    const key = row.parentId ?? ""
    below.set(key, [...(below.get(key) ?? []), row])
  }
  const lines = (parentId: string, indent: string): ReadonlyArray<string> =>
    (below.get(parentId) ?? []).flatMap((row) => [
      `${indent}${row.name} ${row.status.code} ${JSON.stringify(sorted(row.attributes))} ${row.events
        .map(({ name, attributes }) => `${name} ${JSON.stringify(sorted(attributes))}`)
        .join("; ")}`,
      ...lines(row.spanId, `${indent}  `),
    ])
  return lines("", "")
}

const sorted = (attributes: Readonly<Record<string, unknown>>) =>
  Object.entries(attributes).toSorted(([a], [b]) => (a < b ? -1 : 1))
