// Makes the reference of the API from the OpenAPI document: a page for each service with its procedures and the
// messages that only it uses, a page with the messages of several services, and an index.

const schemaPrefix = "#/components/schemas/";
const shared = "shared";

// referencePages returns pairs of the name of a file and its text.
export function referencePages(document) {
  const services = new Map(document.tags.map((tag) => [tag.name, { tag, procedures: [] }]));
  for (const [path, item] of Object.entries(document.paths)) {
    services.get(item.post.tags[0]).procedures.push({ path, item });
  }
  const places = placeSchemas(document, services);
  const pages = [["README.md", indexPage(document, services)]];
  for (const [name, service] of services) {
    pages.push([shortName(name) + ".md", servicePage(document, service, places)]);
  }
  const common = [...places].filter(([, place]) => place === shared).map(([name]) => name);
  pages.push([
    shared + ".md",
    `# Shared messages\n\nMessages that several services use, and the errors of all.\n\n` +
      schemaSections(document, common, shared, places),
  ]);
  return pages;
}

// placeSchemas says on which page each schema is.
function placeSchemas(document, services) {
  const users = new Map();
  for (const [name, { procedures }] of services) {
    const found = new Set();
    for (const { item } of procedures) {
      collectSchemas(document, { request: item.post.requestBody, answer: item.post.responses["200"] }, found);
    }
    for (const schema of found) {
      users.set(schema, [...(users.get(schema) ?? []), shortName(name)]);
    }
  }
  const errors = new Set();
  collectSchemas(document, document.components.responses, errors);
  const names = Object.keys(document.components.schemas);
  return new Map(names.map((name) => {
    const by = users.get(name) ?? [];
    return [name, errors.has(name) || by.length !== 1 ? shared : by[0]];
  }));
}

function collectSchemas(document, node, found) {
  if (node === null || typeof node !== "object") return;
  const name = referredName(node);
  if (name !== undefined && !found.has(name)) {
    found.add(name);
    collectSchemas(document, document.components.schemas[name], found);
  }
  Object.values(node).forEach((child) => collectSchemas(document, child, found));
}

// referredName is the name of the schema that a node refers to.
function referredName(node) {
  const reference = node.$ref;
  return typeof reference === "string" && reference.startsWith(schemaPrefix)
    ? reference.slice(schemaPrefix.length)
    : undefined;
}

function indexPage(document, services) {
  const rows = [...services].map(([name, { tag, procedures }]) =>
    `| [${shortName(name)}](${shortName(name)}.md) | ${inCell(tag.description)} | ${procedures.length} |`);
  return `# API reference\n\n${plain(document.info.description)}\n\n` +
    `This reference is generated from the OpenAPI document that every server serves at \`/openapi.yaml\`. ` +
    `[The API](../api.md) explains calls, errors and streams.\n\n` +
    `| service | for | procedures |\n|---|---|---|\n${rows.join("\n")}\n\n` +
    `[Shared messages](${shared}.md) are those that several services use.\n`;
}

function servicePage(document, { tag, procedures }, places) {
  const page = shortName(tag.name);
  const sections = procedures.map(({ path, item }) => procedureSection(path, item, page, places));
  const own = [...places].filter(([, place]) => place === page).map(([name]) => name);
  return `# ${page}\n\n${plain(tag.description)}\n\n${sections.join("\n")}\n` +
    (own.length > 0 ? `## Messages of ${page}\n\n${schemaSections(document, own, page, places)}` : "");
}

function procedureSection(path, { get, post }, page, places) {
  const answer = post.responses["200"].content;
  const lines = answer["application/x-ndjson"];
  const type = lines ? lines.schema.oneOf[0] : answer["application/json"].schema;
  const request = post.requestBody.content["application/json"].schema;
  return `## ${post.summary}\n\n${plain(post.description)}\n\n` +
    `- Call: \`POST ${path}\`${get ? ", or `GET` with the request in the query" : ""}\n` +
    `- Request: ${typeName(request, page, places)}\n` +
    `- Answer: ${lines ? "lines of JSON, each one " : ""}${typeName(type, page, places)}\n`;
}

function schemaSections(document, names, page, places) {
  return names.sort().map((name) => {
    const schema = document.components.schemas[name];
    return `### ${shortName(name)}\n\n${plain(schema.description ?? "")}\n\n${fieldTable(schema, page, places)}`;
  }).join("\n");
}

function fieldTable(schema, page, places) {
  if (schema.properties === undefined) return variantList(schema, page, places);
  const choices = (schema.oneOf ?? []).flatMap((choice) => choice.required ?? []);
  const rows = Object.entries(schema.properties).map(([name, field]) =>
    `| \`${name}\` | ${typeName(field, page, places)} | ${inCell(field.description ?? "")} ${bounds(field)} |`);
  return `| field | type | |\n|---|---|---|\n${rows.join("\n")}\n` +
    (choices.length > 0 ? `\nExactly one is set of ${choices.map((name) => "`" + name + "`").join(", ")}.\n` : "");
}

// variantList lists the schemas of which a value has one.
function variantList(schema, page, places) {
  return (schema.oneOf ?? []).map((variant) => `- ${typeName(variant, page, places)}\n`).join("");
}

// typeName names the type of a field, with a link to its section.
function typeName(field, page, places) {
  const name = referredName(field);
  if (name !== undefined) {
    const place = places.get(name);
    return `[${shortName(name)}](${place === page ? "" : place + ".md"}#${anchorOf(name)})`;
  }
  if (field.type === "array") return `list of ${typeName(field.items, page, places)}`;
  if (field.additionalProperties) return `map of ${typeName(field.additionalProperties, page, places)}`;
  if (field.const !== undefined) return `\`${field.const}\``;
  return String(field.type ?? "any").replace("string", "text");
}

// bounds says the bounds of a value.
function bounds(field) {
  const said = [];
  if (field.minimum !== undefined && field.minimum !== 0) said.push(`at least ${field.minimum}`);
  if (field.maximum !== undefined) said.push(`at most ${field.maximum.toLocaleString("en")}`);
  if (field.maxItems !== undefined) said.push(`at most ${field.maxItems.toLocaleString("en")} entries`);
  if (field.maxProperties !== undefined) said.push(`at most ${field.maxProperties} pairs`);
  if (field.pattern !== undefined) said.push("pattern `" + field.pattern.replaceAll("|", "\\|") + "`");
  return said.length > 0 ? `(${said.join(", ")})` : "";
}

const shortName = (name) => name.replace(/^(quorate\.v1|google\.protobuf)\./, "");
const anchorOf = (name) => shortName(name).toLowerCase().replaceAll(".", "");
// plain keeps braces from the templates of the site.
const plain = (text) => text.replaceAll("{{", "{&#8203;{");
const inCell = (text) => plain(text).replace(/\s*\n\s*/g, " ").replaceAll("|", "\\|");
