import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { sizeOf, sizeOfUrl } from "../../src/model/ImageSize.ts"
import { gif, jpeg, png, webp } from "../support/images.ts"

const side = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))

describe("the size of an image", () => {
  it.effect.prop(
    "is read from its first bytes, in every format, as bytes and as base64",
    [side(16_000), side(16_000), Schema.Array(side(60_000)).check(Schema.isMaxLength(3))],
    ([width, height, segments]) =>
      Effect.sync(() => {
        const size = { width, height }
        const all = [
          png(size),
          gif(size),
          jpeg(size, segments),
          ...(["VP8 ", "VP8L", "VP8X"] as const).map((kind) => webp(size, kind)),
        ]
        for (const bytes of all) {
          const base64 = Buffer.from(bytes).toString("base64")
          assert.deepStrictEqual(sizeOf(bytes), size)
          assert.deepStrictEqual(sizeOf(base64), size)
          assert.deepStrictEqual(sizeOfUrl(`data:image/any;base64,${base64}`), size)
        }
      }),
    { arbitrary: { runs: 200, seed: 7 } },
  )

  it("is unknown rather than guessed, whatever the bytes are", () => {
    const whole = [png, gif, jpeg, (size: { width: number; height: number }) => webp(size, "VP8X")].map((make) =>
      make({ width: 300, height: 200 }),
    )
    for (const bytes of whole) {
      for (let length = 0; length < bytes.length; length++) {
        const size = sizeOf(bytes.subarray(0, length))
        assert.isTrue(size === undefined || size.width === 300)
      }
    }
    assert.isUndefined(sizeOf(""))
    assert.isUndefined(sizeOf(new Uint8Array(1000).fill(0xff)))
    assert.isUndefined(sizeOf(png({ width: 0, height: 10 })))
    assert.isUndefined(sizeOf("<svg width='10' height='10'/>"))
    assert.isUndefined(sizeOfUrl("https://example.com/a.png"))
    assert.isUndefined(sizeOfUrl("data:image/png,plain"))
  })

  it("is not looked for without an end", () => {
    assert.isUndefined(sizeOf(jpeg({ width: 10, height: 10 }, [60_000, 60_000, 60_000, 60_000, 60_000])))
  })
})
