/** Reading an OTLP export request of traces, in JSON and in protobuf, without a generated schema. */

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: "unspecified" | "internal" | "server" | "client" | "producer" | "consumer"
  readonly attributes: Readonly<Record<string, unknown>>
  readonly status: { readonly code: "unset" | "ok" | "error"; readonly message: string }
  readonly events: ReadonlyArray<{
    readonly name: string
    readonly nanos: bigint
    readonly attributes: Readonly<Record<string, unknown>>
  }>
  readonly links: ReadonlyArray<{
    readonly traceId: string
    readonly spanId: string
    readonly attributes: Readonly<Record<string, unknown>>
  }>
  readonly startNanos: bigint
  readonly endNanos: bigint
  readonly scope: string
  readonly resource: Readonly<Record<string, unknown>>
}

type Attributes = Record<string, unknown>

const kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"] as const
const codes = ["unset", "ok", "error"] as const

const orNone = (id: string): string | undefined => (id === "" ? undefined : id)

// JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding

interface JsonValue {
  readonly stringValue?: string
  readonly boolValue?: boolean
  readonly intValue?: string | number
  readonly doubleValue?: number
  readonly bytesValue?: string
  readonly arrayValue?: { readonly values?: ReadonlyArray<JsonValue> }
  readonly kvlistValue?: { readonly values?: JsonAttributes }
}

type JsonAttributes = ReadonlyArray<{ readonly key: string; readonly value?: JsonValue }>

interface JsonSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind?: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes?: JsonAttributes
  readonly status?: { readonly code?: number; readonly message?: string }
  readonly events?: ReadonlyArray<{
    readonly name: string
    readonly timeUnixNano: string
    readonly attributes?: JsonAttributes
  }>
  readonly links?: ReadonlyArray<{
    readonly traceId: string
    readonly spanId: string
    readonly attributes?: JsonAttributes
  }>
}

interface JsonRequest {
  readonly resourceSpans?: ReadonlyArray<{
    readonly resource?: { readonly attributes?: JsonAttributes }
    readonly scopeSpans?: ReadonlyArray<{
      readonly scope?: { readonly name?: string }
      readonly spans?: ReadonlyArray<JsonSpan>
    }>
  }>
}

export const fromJson = (body: Buffer): ReadonlyArray<ReceivedSpan> => {
  const request = JSON.parse(body.toString()) as JsonRequest
  return (request.resourceSpans ?? []).flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ scope, spans = [] }) =>
      spans.map((span) => ({
        ...jsonSpan(span),
        scope: scope?.name ?? "",
        resource: jsonAttributes(resource?.attributes),
      })),
    ),
  )
}

const jsonSpan = (span: JsonSpan): Omit<ReceivedSpan, "scope" | "resource"> => ({
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: orNone(span.parentSpanId ?? ""),
  name: span.name,
  kind: kinds[span.kind ?? 0] ?? "unspecified",
  attributes: jsonAttributes(span.attributes),
  status: { code: codes[span.status?.code ?? 0] ?? "unset", message: span.status?.message ?? "" },
  events: (span.events ?? []).map(({ attributes, name, timeUnixNano }) => ({
    name,
    nanos: BigInt(timeUnixNano),
    attributes: jsonAttributes(attributes),
  })),
  links: (span.links ?? []).map(({ attributes, spanId, traceId }) => ({
    traceId,
    spanId,
    attributes: jsonAttributes(attributes),
  })),
  startNanos: BigInt(span.startTimeUnixNano),
  endNanos: BigInt(span.endTimeUnixNano),
})

const jsonAttributes = (list: JsonAttributes = []): Attributes =>
  Object.fromEntries(list.map(({ key, value }) => [key, jsonValue(value ?? {})]))

const jsonValue = (value: JsonValue): unknown => {
  if (value.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(jsonValue)
  if (value.kvlistValue !== undefined) return jsonAttributes(value.kvlistValue.values)
  if (value.intValue !== undefined) return Number(value.intValue)
  return value.stringValue ?? value.boolValue ?? value.doubleValue ?? value.bytesValue
}

// Protobuf: the field numbers are those of opentelemetry/proto/{trace,common,resource}/v1.

/** One field of a message: a number for varints and fixed widths, bytes for everything else. */
type Field = bigint | Buffer
type Message = ReadonlyMap<number, ReadonlyArray<Field>>

export const fromProtobuf = (body: Buffer): ReadonlyArray<ReceivedSpan> =>
  messages(decode(body), 1).flatMap((resourceSpans) => {
    const resource = protoAttributes(message(resourceSpans, 1), 1)
    return messages(resourceSpans, 2).flatMap((scopeSpans) => {
      const scope = text(message(scopeSpans, 1), 1)
      return messages(scopeSpans, 2).map((span) => ({ ...protoSpan(span), scope, resource }))
    })
  })

/** How many spans there are, by name, without reading more of them. */
export const namesIn = (body: Buffer): ReadonlyArray<string> =>
  messages(decode(body), 1).flatMap((resourceSpans) =>
    messages(resourceSpans, 2).flatMap((scopeSpans) => messages(scopeSpans, 2).map((span) => text(span, 5))),
  )

const protoSpan = (span: Message): Omit<ReceivedSpan, "scope" | "resource"> => {
  const status = message(span, 15)
  return {
    traceId: bytes(span, 1).toString("hex"),
    spanId: bytes(span, 2).toString("hex"),
    parentSpanId: orNone(bytes(span, 4).toString("hex")),
    name: text(span, 5),
    kind: kinds[Number(integer(span, 6))] ?? "unspecified",
    startNanos: integer(span, 7),
    endNanos: integer(span, 8),
    attributes: protoAttributes(span, 9),
    events: messages(span, 11).map((event) => ({
      name: text(event, 2),
      nanos: integer(event, 1),
      attributes: protoAttributes(event, 3),
    })),
    links: messages(span, 13).map((link) => ({
      traceId: bytes(link, 1).toString("hex"),
      spanId: bytes(link, 2).toString("hex"),
      attributes: protoAttributes(link, 4),
    })),
    status: { code: codes[Number(integer(status, 3))] ?? "unset", message: text(status, 2) },
  }
}

const protoAttributes = (parent: Message, field: number): Attributes =>
  Object.fromEntries(messages(parent, field).map((pair) => [text(pair, 1), protoValue(message(pair, 2))]))

const protoValue = (value: Message): unknown => {
  if (value.has(1)) return text(value, 1)
  if (value.has(2)) return integer(value, 2) !== 0n
  if (value.has(3)) return Number(BigInt.asIntN(64, integer(value, 3)))
  if (value.has(4)) return double(integer(value, 4))
  if (value.has(5)) return messages(message(value, 5), 1).map(protoValue)
  if (value.has(6)) return protoAttributes(message(value, 6), 1)
  return value.has(7) ? bytes(value, 7).toString("base64") : undefined
}

const double = (bits: bigint): number => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigUInt64LE(bits)
  return buffer.readDoubleLE()
}

const bytes = (self: Message, field: number): Buffer => {
  const last = self.get(field)?.at(-1)
  return typeof last === "object" ? last : Buffer.alloc(0)
}
const integer = (self: Message, field: number): bigint => {
  const last = self.get(field)?.at(-1)
  return typeof last === "bigint" ? last : 0n
}
const text = (self: Message, field: number): string => bytes(self, field).toString()
const message = (self: Message, field: number): Message => decode(bytes(self, field))
const messages = (self: Message, field: number): ReadonlyArray<Message> =>
  (self.get(field) ?? []).map((value) => decode(typeof value === "object" ? value : Buffer.alloc(0)))

const decode = (buffer: Buffer): Message => {
  const fields = new Map<number, Array<Field>>()
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = buffer.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  /** Of tags and lengths, which are small. */
  const small = (): number => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = buffer.readUInt8(at++)
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }
  const field = (wire: number): Field => {
    if (wire === 0) return varint()
    if (wire !== 1 && wire !== 2 && wire !== 5) throw new Error(`wire type ${wire}`)
    const length = wire === 1 ? 8 : wire === 5 ? 4 : small()
    const value = buffer.subarray(at, (at += length))
    if (value.length < length) throw new Error("the message is cut off")
    return wire === 1 ? value.readBigUInt64LE() : wire === 5 ? BigInt(value.readUInt32LE()) : value
  }
  while (at < buffer.length) {
    const tag = small()
    const number = tag >>> 3
    const values = fields.get(number) ?? []
    values.push(field(tag & 7))
    fields.set(number, values)
  }
  return fields
}
