/**
 * What to report about a reply that arrived, finished or failed, in either protocol.
 */
import type * as Provider from "../../model/Provider.ts"
import type { Settings } from "../Options.ts"
import { usageIn } from "./chatReply.ts"
import { asArray, asRecord, named } from "./json.ts"
import { toUsage } from "./usage.ts"

export const reportOf = (reply: unknown, { usageStyle }: Settings): Provider.Report => {
  const body = asRecord(reply)
  const [choice] = asArray(body["choices"])
  const [id, tier] = [named(body["id"]), named(body["service_tier"])]
  return {
    _tag: "Replied",
    usage: toUsage(usageIn(body, choice === undefined ? undefined : asRecord(choice)), usageStyle),
    model: named(body["model"]),
    ...(tier === undefined ? {} : { tier }),
    ...(id === undefined ? {} : { id }),
  }
}
