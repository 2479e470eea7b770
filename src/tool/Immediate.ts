/**
 * Going on from an Effect that is over already. Most policies, decoders and checks answer at once: then what follows is
 * called, and nothing has to be run for it. What follows must therefore be called where its Effect would be run next.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** Whether an Effect has succeeded without being run. */
export const isDone = <A, E, R>(self: Effect.Effect<A, E, R>): self is Exit.Success<A, E> & Effect.Effect<A> =>
  Exit.isExit(self) && Exit.isSuccess(self)

/** `Effect.flatMap`, at once where it can be. */
export const andThen = <A, E, R, B, E2, R2>(
  self: Effect.Effect<A, E, R>,
  next: (value: A) => Effect.Effect<B, E2, R2>,
): Effect.Effect<B, E | E2, R | R2> => (isDone(self) ? next(self.value) : Effect.flatMap(self, next))
