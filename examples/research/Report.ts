/**
 * What a person reads of the research job alone: the report with its citations.
 */
import { counted } from "../shared/Table.ts"
import type * as Corpus from "./Corpus.ts"
import type { Report } from "./Team.ts"

/** The report with its citations. */
export const reportText = (question: string, report: Report, corpus: Corpus.Corpus): string =>
  [
    `Question: ${question}`,
    `Documents: ${corpus.root} (${counted(corpus.files.length, "file")})`,
    ...corpus.skipped.map((one) => `Skipped: ${one.path} (${one.reason})`),
    ...corpus.duplicates.map((one) => `Counted once: ${one.path} is the same as ${one.of}`),
    "",
    report.summary,
    ...report.findings.flatMap((finding, index) => [
      "",
      `${index + 1}. ${finding.claim}`,
      `   ${finding.file}:${finding.line}: ${finding.quote}`,
    ]),
    ...(report.missing.length === 0 ? [] : ["", "Missing:", ...report.missing.map((part) => `- ${part}`)]),
  ].join("\n")
