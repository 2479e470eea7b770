/**
 * Spans for what Bursar does, on whatever Effect tracer is provided. With none, no span object is made.
 *
 * A stop is a value, so an Effect that succeeds may still stand for a failed run: `fail` marks the span as an error with
 * a type and a fixed sentence, never with the text of a provider or a user.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Tracer from "effect/Tracer"
import * as Names from "./Names.ts"
import { isTraced, parentOf, type Source, sourceOf, start } from "./Start.ts"
import { enter, leave, type Part } from "./Trail.ts"
import type { Subject, Watch } from "./Watch.ts"
import { exitOf, leftOut, off, type TraceSpan, Writer } from "./Writer.ts"

export type { Address, TraceSpan } from "./Writer.ts"

/**
 * The agent or scope that the current Effect belongs to: the facts that stand on all of its spans, and who hears what is
 * recorded of its run.
 *
 * @category spans
 * @since 0.1.0
 */
export interface Node {
  readonly facts: Readonly<Record<string, unknown>>
  /** Absent where neither traces nor metrics are written. */
  readonly watch: Watch | undefined
}

/**
 * The node of the current fiber; set around the run of an agent.
 *
 * @category spans
 * @since 0.1.0
 */
export const CurrentNode = Context.Reference<Node>("bursar/telemetry/Node", {
  defaultValue: () => ({ facts: { [Names.schema]: Names.schemaVersion }, watch: undefined }),
})

/** What a span is made with. */
export interface Options {
  readonly kind?: Tracer.SpanKind
  /** Computed only where there is a span to have them. */
  readonly attributes?: () => Readonly<Record<string, unknown>>
  /** Said at its end, unless it was broken off. */
  readonly atEnd?: () => Readonly<Record<string, unknown>>
  /** What of the run it stands for: the journal then tells it what happens there. */
  readonly of?: Subject
  /** A whole part of a run, which may go on in another trace when its own is full. */
  readonly part?: Part
}

/**
 * Runs `use` inside a span of that name, with the facts of the current agent and `attributes` set at its start.
 *
 * @category spans
 * @since 0.1.0
 */
export const span = <A, E, R>(
  name: string,
  options: Options,
  use: (span: TraceSpan) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>> =>
  Effect.withFiber((fiber) => {
    const isHold = options.of?._tag === "Hold"
    const traced = isTraced(fiber)
    if (!traced && !isHold) return use(off) as Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>>
    const node = fiber.getRef(CurrentNode)
    // Requests to models are counted by metrics, also where nothing is traced.
    if (options.of?._tag === "Hold") node.watch?.asked(options.of.hold, options.attributes)
    const parent = parentOf(fiber)
    if (!traced || parent?.sampled === false) {
      // What is left out is left out as a whole; who is asked further is told so.
      const writer = parent === undefined ? off : leftOut(parent)
      return use(writer) as Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>>
    }
    const source = node.watch?.sourceFor(fiber) ?? sourceOf(fiber)!
    const { room } = source
    const opened = Effect.uninterruptibleMask((restore) => {
      const open = begin(source, { name, options, node, parent })
      return restore(Effect.withParentSpan(use(open.writer), open.writer.made, { captureStackTrace: false })).pipe(
        Effect.onExit((exit) => {
          const end = open.ended(exit)
          return room?.isFull(true) === true ? Effect.andThen(room.wait(true), Effect.sync(end)) : Effect.sync(end)
        }),
      )
    })
    return options.part !== undefined && room?.isFull(false) === true
      ? Effect.andThen(room.wait(false), opened)
      : opened
  })

interface Open {
  readonly writer: Writer
  /** What ends the span as of now. */
  readonly ended: (exit: Exit.Exit<unknown, unknown>) => () => void
}

const begin = (
  source: Source,
  of: {
    readonly name: string
    readonly options: Options
    readonly node: Node
    readonly parent: Tracer.AnySpan | undefined
  },
): Open => {
  const { name, node, options } = of
  const { facts } = node
  const place = enter(source, { parent: of.parent, part: options.part, facts })
  const made = start(source, {
    name,
    kind: options.kind ?? "internal",
    parent: place.parent,
    links: place.links,
    attributes: { ...facts, ...options.attributes?.() },
  })
  place.put(made)
  const writer = new Writer(made, { clock: source.clock, facts, content: source.content })
  if (options.of !== undefined) node.watch?.opened(options.of, writer)
  return {
    writer,
    ended: (exit) => {
      const nanos = source.clock.currentTimeNanosUnsafe()
      if (options.atEnd !== undefined && exit._tag === "Success") writer.attributes(options.atEnd())
      const ended = exitOf(exit, writer)
      const end = (): void => {
        made.end(nanos, ended)
        leave(source, made)
      }
      const { of } = options
      return of === undefined || node.watch === undefined ? end : () => node.watch?.ended(of, writer, end)
    },
  }
}
