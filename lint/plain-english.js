// A rule of textlint for the Markdown of this repository: short sentences, short lines, an actor in each sentence, plain phrases.
// tests/language.py applies the same phrases to the texts in the code.
"use strict";

const { headless, phrases } = require("./phrases.json");

const MOST_WORDS = 30;
const MOST_WORDS_INTERNALS = 40; // pages for maintainers
const MOST_WORDS_DECISIONS = 60; // records of the past
const LONGEST_LINE = 100;

const START = "^[\"'`*(\\s]*";
const HEADLESS_SENTENCE = new RegExp(`${START}(?:${[...headless.clause, ...headless.sentence].join("|")})\\b`, "i");
const HEADLESS_CLAUSE = new RegExp(`[:;]\\s+(?:${headless.clause.join("|")})\\b`, "i");
const PHRASES = phrases.map(({ pattern, advice, docs = false }) => {
  return { pattern: new RegExp(`\\b(?:${pattern})\\b`.replaceAll(" ", "\\s+"), "i"), advice, users: docs };
});

/** The text of a node as it is read: a link is its label, inline code is one word, an image and HTML are nothing. */
function plain(node) {
  if (node.type === "Image" || node.type === "Html") return "";
  if (node.type === "Code") return "code";
  if (node.type === "Break") return " ";
  return node.value ?? node.children.map(plain).join("");
}

/** The findings of one sentence, as messages. Pages for maintainers may have longer sentences and some phrases more. */
function* findings(sentence, internal, mostWords) {
  const words = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
  if (words > mostWords) yield `sentence length: ${words} words, at most ${mostWords}`;
  if (!sentence.trimEnd().endsWith("?") && (HEADLESS_SENTENCE.test(sentence) || HEADLESS_CLAUSE.test(sentence)))
    yield `headless sentence: ${headless.advice}`;
  const spoken = sentence.replace(/(?<=\w)['’](?=s\b)/g, " ");
  for (const { pattern, advice, users } of PHRASES) {
    const found = internal && users ? null : pattern.exec(spoken);
    if (found) yield `phrase: "${found[0].replace(/\s+/g, " ")}" (${advice})`;
  }
}

module.exports = function plainEnglish(context) {
  const { Syntax, RuleError, report, getSource, locator } = context;
  const path = (context.getFilePath() ?? "").replaceAll("\\", "/");
  const internal = /(^|\/)docs\/internals\//.test(path);
  const mostWords = path.includes("/internals/decisions/") ? MOST_WORDS_DECISIONS : internal ? MOST_WORDS_INTERNALS : MOST_WORDS;

  async function check(node) {
    const { splitAST } = await import("sentence-splitter");
    for (const sentence of splitAST(node).children) {
      if (sentence.type !== "Sentence") continue;
      const start = sentence.range[0] - node.range[0];
      for (const message of findings(plain(sentence), internal, mostWords)) {
        report(node, new RuleError(message, { padding: locator.range([start, start + sentence.raw.length]) }));
      }
    }
  }

  function lines(document) {
    const free = new Set();
    const skip = (node) => {
      const whole = node.type === "Table" || node.type === "CodeBlock" || node.type === "Html";
      if (whole) for (let line = node.loc.start.line; line <= node.loc.end.line; line++) free.add(line);
      else (node.children ?? []).forEach(skip);
    };
    skip(document);
    let offset = 0;
    getSource().split("\n").forEach((line, index) => {
      if (line.length > LONGEST_LINE && !free.has(index + 1) && line.trim().includes(" ")) {
        report(document, new RuleError(`line length: ${line.length} characters, at most ${LONGEST_LINE}`, { padding: locator.at(offset) }));
      }
      offset += line.length + 1;
    });
  }

  return { [Syntax.Document]: lines, [Syntax.Paragraph]: check, [Syntax.Header]: check, [Syntax.TableCell]: check };
};
