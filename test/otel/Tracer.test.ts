import { assert, describe, it } from "@effect/vitest"
import * as Api from "@opentelemetry/api"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as EffectTracer from "effect/Tracer"
import * as Tracer from "../../src/otel/Tracer.ts"
import { exported } from "./exporting.ts"

class Refused extends Schema.TaggedError<Refused>()("Refused", { tokens: Schema.Int }) {
  override get message(): string {
    return `${this.tokens} tokens refused`
  }
}

class Nameless extends Schema.TaggedError<Nameless>()("Nameless", {}) {}

const external = EffectTracer.externalSpan({ traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" })

describe("a span", () => {
  for (const protocol of ["http/protobuf", "http/json"] as const) {
    it.live(`arrives over ${protocol} with its parent, kind, times and attributes`, () =>
      Effect.gen(function* () {
        const inner = Effect.annotateCurrentSpan({ late: "yes" }).pipe(
          Effect.withSpan("inner", {
            kind: "client",
            attributes: { text: "a", whole: -3, part: 0.5, yes: true, list: ["a", "b"], mixed: [1, "a"], none: null },
          }),
        )
        const { exit, named, receiver, spans } = yield* exported(Effect.withSpan(inner, "outer"), { protocol })
        assert.isTrue(Exit.isSuccess(exit))
        assert.deepStrictEqual(
          spans.map(({ name }) => name),
          ["inner", "outer"],
        )
        const [child, parent] = [named("inner"), named("outer")]
        assert.strictEqual(parent.parentSpanId, undefined)
        assert.strictEqual(child.parentSpanId, parent.spanId)
        assert.strictEqual(child.traceId, parent.traceId)
        assert.strictEqual(child.kind, "client")
        assert.strictEqual(parent.kind, "internal")
        assert.deepStrictEqual(child.attributes, {
          text: "a",
          whole: -3,
          part: 0.5,
          yes: true,
          list: ["a", "b"],
          mixed: '[1,"a"]',
          late: "yes",
        })
        assert.isTrue(parent.startNanos <= child.startNanos && child.endNanos <= parent.endNanos)
        assert.strictEqual(child.scope, "bursar")
        const [request] = receiver.requests
        assert.strictEqual(
          request?.headers["content-type"],
          protocol === "http/json" ? "application/json" : "application/x-protobuf",
        )
      }),
    )
  }

  it.live("keeps integers that a number can hold, and the digits of others", () =>
    Effect.gen(function* () {
      const attributes = { exact: 9_007_199_254_740_991n, beyond: 9_007_199_254_740_993n }
      const { named } = yield* exported(Effect.withSpan(Effect.void, "counts", { attributes }))
      assert.deepStrictEqual(named("counts").attributes, {
        exact: 9_007_199_254_740_991,
        beyond: "9007199254740993",
      })
    }),
  )

  it.live("carries events and links", () =>
    Effect.gen(function* () {
      const program = Effect.gen(function* () {
        const span = yield* Effect.currentSpan
        span.event("bursar.budget.carved", 5_000_000_007n, { tokens: 300 })
        span.addLinks([{ span: external, attributes: { "bursar.link": "resumes" } }])
      }).pipe(Effect.orDie)
      const { named } = yield* exported(
        Effect.withSpan(program, "run", { links: [{ span: external, attributes: { "bursar.link": "continues" } }] }),
      )
      assert.deepStrictEqual(named("run").events, [
        { name: "bursar.budget.carved", nanos: 5_000_000_007n, attributes: { tokens: 300 } },
      ])
      assert.deepStrictEqual(
        named("run").links,
        ["continues", "resumes"].map((link) => ({
          traceId: external.traceId,
          spanId: external.spanId,
          attributes: { "bursar.link": link },
        })),
      )
    }),
  )

  it.live("ignores what is written after its end", () =>
    Effect.gen(function* () {
      const program = Effect.gen(function* () {
        const span = yield* Effect.makeSpan("run", { attributes: { before: 1 } })
        span.end(1n, Exit.void)
        span.attribute("after", 1)
        span.event("after", 2n)
        span.addLinks([{ span: external, attributes: {} }])
        span.end(9n, Exit.fail("late"))
      })
      const { named } = yield* exported(program)
      const { attributes, events, links, status } = named("run")
      assert.deepStrictEqual(
        { attributes, events, links, status },
        { attributes: { before: 1 }, events: [], links: [], status: { code: "unset", message: "" } },
      )
    }),
  )
})

describe("the status of a span is", () => {
  const ending = <A, E>(program: Effect.Effect<A, E>, options?: Tracer.Options) =>
    Effect.map(
      exported(Effect.withSpan(program, "run", { attributes: { before: 1 } }), options),
      ({ named, receiver }) => ({ ...named("run"), bytes: receiver.bytes() }),
    )

  it.live("unset after a success", () =>
    Effect.gen(function* () {
      const { attributes, status } = yield* ending(Effect.succeed(1))
      assert.deepStrictEqual(
        { attributes, status },
        { attributes: { before: 1 }, status: { code: "unset", message: "" } },
      )
    }),
  )

  it.live("an error with its message after a failure, without an event or a stack", () =>
    Effect.gen(function* () {
      const { attributes, bytes, events, status } = yield* ending(Effect.fail(new Refused({ tokens: 12 })))
      assert.deepStrictEqual(status, { code: "error", message: "12 tokens refused" })
      assert.deepStrictEqual(attributes, { before: 1 })
      assert.deepStrictEqual(events, [])
      assert.notInclude(bytes, "Tracer.test.ts")
    }),
  )

  it.live("the message of the first of several errors, an interruption not being one", () =>
    Effect.gen(function* () {
      const cause = Cause.fromReasons([
        ...Cause.interrupt(1).reasons,
        ...Cause.die(new Error("first")).reasons,
        ...Cause.fail(new Error("second")).reasons,
      ])
      const { status } = yield* ending(Effect.failCause(cause))
      assert.deepStrictEqual(status, { code: "error", message: "first" })
    }),
  )

  it.live("never an empty error", () =>
    Effect.gen(function* () {
      const messages: Array<string> = []
      for (const error of [new Nameless(), new TypeError(), "text", 5, undefined, {}]) {
        messages.push((yield* ending(Effect.fail(error))).status.message)
      }
      assert.deepStrictEqual(messages, [
        "Nameless",
        "TypeError",
        "text",
        "Unknown error: 5",
        "Unknown error: undefined",
        "Unknown error",
      ])
    }),
  )

  it.live("unset after an interruption, which an attribute tells", () =>
    Effect.gen(function* () {
      const interrupted = Effect.gen(function* () {
        const fiber = yield* Effect.never.pipe(
          Effect.withSpan("run", { attributes: { before: 1 } }),
          Effect.forkChild({ startImmediately: true }),
        )
        yield* Fiber.interrupt(fiber)
      })
      const { attributes, status } = (yield* exported(interrupted)).named("run")
      assert.deepStrictEqual(status, { code: "unset", message: "" })
      assert.deepStrictEqual(attributes, { before: 1, "effect.fiber.interrupted": true })
    }),
  )

  it.live("joined by exception events when they are asked for", () =>
    Effect.gen(function* () {
      const { events } = yield* ending(Effect.fail(new Refused({ tokens: 12 })), { exceptions: true })
      assert.strictEqual(events.length, 1)
      assert.strictEqual(events[0]?.name, "exception")
      assert.strictEqual(events[0]?.attributes["exception.message"], "12 tokens refused")
    }),
  )
})

describe("the parent of a span is", () => {
  it.live("a span from elsewhere", () =>
    Effect.gen(function* () {
      const { named } = yield* exported(Effect.withSpan(Effect.void, "run", { parent: external }))
      assert.strictEqual(named("run").traceId, external.traceId)
      assert.strictEqual(named("run").parentSpanId, external.spanId)
    }),
  )

  it.live("nothing that is not sampled: then nothing below is exported", () =>
    Effect.gen(function* () {
      const unsampled = { ...external, sampled: false }
      const program = Effect.currentSpan.pipe(
        Effect.orDie,
        Effect.withSpan("inner"),
        Effect.withSpan("outer", { parent: unsampled }),
      )
      const { exit, spans } = yield* exported(program)
      assert.deepStrictEqual(spans, [])
      const inner = Exit.isSuccess(exit) ? exit.value : undefined
      assert.strictEqual(inner?.traceId, external.traceId)
      assert.strictEqual(inner?.sampled, false)
    }),
  )

  it.live("that of the forking fiber", () =>
    Effect.gen(function* () {
      const program = Effect.all(
        Array.from({ length: 3 }, (_, index) => Effect.withSpan(Effect.yieldNow, `child ${index}`)),
        { concurrency: "unbounded" },
      )
      const { named, spans } = yield* exported(Effect.withSpan(program, "run"))
      assert.deepStrictEqual(
        spans.filter(({ parentSpanId }) => parentSpanId === named("run").spanId).map(({ name }) => name),
        ["child 0", "child 1", "child 2"],
      )
    }),
  )

  it.live("the one that is active in OpenTelemetry, unless a root is asked for", () =>
    Effect.gen(function* () {
      const program = Effect.gen(function* () {
        const foreign = Api.trace.getTracer("foreign").startSpan("request")
        yield* Effect.promise(() =>
          Api.context.with(Api.trace.setSpan(Api.context.active(), foreign), () =>
            apart(
              Effect.withSpan(Effect.void, "below").pipe(
                Effect.andThen(Effect.withSpan(Effect.void, "beside", { root: true })),
                Effect.provideService(EffectTracer.Tracer, tracerOf()),
              ),
            ),
          ),
        )
        foreign.end()
      })
      const { named } = yield* exported(program)
      assert.strictEqual(named("below").parentSpanId, named("request").spanId)
      assert.strictEqual(named("below").traceId, named("request").traceId)
      assert.strictEqual(named("beside").parentSpanId, undefined)
      assert.notStrictEqual(named("beside").traceId, named("request").traceId)
    }),
  )

  it.live("for foreign spans the Effect span whose context they were made in", () =>
    Effect.gen(function* () {
      const foreign = (name: string) => Api.trace.getTracer("foreign").startSpan(name).end()
      const program = Effect.gen(function* () {
        foreign("outside")
        yield* Tracer.withOtelContext({
          try: async () => {
            await Promise.resolve()
            foreign("inside")
          },
          catch: String,
        })
        const enter = yield* Tracer.enter
        enter(() => foreign("entered"))
        foreign("after")
      })
      const { named } = yield* exported(Effect.withSpan(program, "run"))
      assert.deepStrictEqual(
        ["outside", "inside", "entered", "after"].map((name) => named(name).parentSpanId),
        [undefined, named("run").spanId, named("run").spanId, undefined],
      )
    }),
  )

  it.live("not an Effect span that a callback happens to run inside of", () =>
    Effect.gen(function* () {
      const program = Effect.flatMap(Tracer.enter, (enter) =>
        Effect.promise(() =>
          enter(() =>
            apart(
              Effect.withSpan(Effect.void, "stranger").pipe(Effect.provideService(EffectTracer.Tracer, tracerOf())),
            ),
          ),
        ),
      )
      const { named } = yield* exported(Effect.withSpan(program, "run"))
      assert.strictEqual(named("stranger").parentSpanId, undefined)
    }),
  )

  it.live("kept with its baggage, whatever is active when the child begins", () =>
    Effect.gen(function* () {
      const key = Api.createContextKey("test/baggage")
      const program = Effect.gen(function* () {
        const run = Effect.flatMap(Tracer.enter, (enter) =>
          Effect.sync(() => enter(() => Api.context.active().getValue(key))),
        ).pipe(
          Effect.withSpan("inner"),
          Effect.withSpan("outer"),
          Effect.provideService(EffectTracer.Tracer, tracerOf()),
        )
        return yield* Effect.promise(() => Api.context.with(Api.ROOT_CONTEXT.setValue(key, "here"), () => apart(run)))
      })
      const { exit } = yield* exported(program)
      assert.deepStrictEqual(exit, Exit.succeed("here"))
    }),
  )
})

/** As a callback of foreign code starts an effect: in a fiber without a parent. */
const apart = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect)

const tracerOf = () => Tracer.make(Api.trace.getTracer("test"))
