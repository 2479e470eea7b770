/**
 * Draws a stored trace: `npm run trace -- FILE.json [PICTURE.svg]`. The file is what Jaeger answers
 * (`/api/traces/ID`) or what was exported, as JSON; without a name the picture goes to the output.
 */
import * as fs from "node:fs"
import { draw } from "./draw.ts"
import { read } from "./read.ts"

const [file, picture] = process.argv.slice(2)
if (file === undefined) {
  console.error("usage: npm run trace -- FILE.json [PICTURE.svg]")
  process.exitCode = 2
} else {
  const drawn = draw(read(fs.readFileSync(file, "utf8")))
  if (picture === undefined) process.stdout.write(drawn)
  else fs.writeFileSync(picture, drawn)
}
