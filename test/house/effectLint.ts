/**
 * The diagnostics of the Effect language service over the whole project: `npm run lint:effect`.
 *
 * The tool is fetched by npx and stays out of the lock file, so it can be missing where the registry is out of reach.
 * That is a failure with a plain reason, never a pass, and so is a run that looked at no file.
 */
import { spawnSync } from "node:child_process"

const tool = "@effect/tsgo@0.45.0"
const args = ["-y", "-p", tool, "effect-tsgo", "diagnostics", "--project", "tsconfig.json", "--strict"]
const { error, status, stderr, stdout } = spawnSync("npx", args, {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "pipe"],
  maxBuffer: 1 << 28,
})
process.stdout.write(stdout ?? "")
process.stderr.write(stderr ?? "")

const checked = Number(/Checked (\d+) files/.exec(stdout ?? "")?.[1] ?? -1)
if (error !== undefined || checked < 0) {
  console.error(`lint:effect: ${tool} did not run (${error?.message ?? "see above"}); nothing was checked.`)
  console.error("It is fetched from the npm registry on first use, so this needs the network or a filled npm cache.")
} else if (checked === 0) {
  console.error("lint:effect: no file was checked; tsconfig.json must list @effect/language-service under plugins.")
}
process.exitCode = checked > 0 ? (status ?? 1) : 1
