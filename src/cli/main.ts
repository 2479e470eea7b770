#!/usr/bin/env node
/**
 * The executable `bursar`.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fs from "node:fs"
import { main } from "./Cli.ts"

const manifest = new URL("../../package.json", import.meta.url)
const { version } = JSON.parse(fs.readFileSync(manifest, "utf8")) as { readonly version: string }

/** The platform is an optional peer: who uses no door that needs it does not have it. */
const platformMissing = (error: NodeJS.ErrnoException): never => {
  if (error.code !== "ERR_MODULE_NOT_FOUND") throw error
  console.error("bursar: the command needs the package @effect/platform-node: npm install @effect/platform-node")
  process.exit(2)
}

const [NodeRuntime, NodeServices] = await Promise.all([
  import("@effect/platform-node/NodeRuntime"),
  import("@effect/platform-node/NodeServices"),
]).catch(platformMissing)

// Who reads the output may have read enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1)
})

main(process.argv.slice(2), version).pipe(
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) && typeof exit.value === "number" ? exit.value : 1),
  }),
)
