// Renders the documentation from the OpenAPI document. All text is inserted as text nodes, so the document cannot inject markup.

/** An element with attributes and children. Strings become text nodes. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
}

/** Text as paragraphs; text in backquotes becomes code. */
function prose(text = "") {
  return text.split(/\n{2,}/).map((paragraph) => element("p", {}, inline(paragraph)));
}

function inline(text = "") {
  return text.split(/(`[^`]+`)/).filter(Boolean).map((part) => part.startsWith("`") ? element("code", {}, part.slice(1, -1)) : part);
}

/** A code block with a copy button. */
function block(text) {
  const button = element("button", { type: "button" }, "copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  });
  return element("pre", {}, element("code", {}, text), button);
}

/** Type and constraints of a schema, as short text. */
function kind(schema = {}) {
  const types = [schema.type ?? []].flat().filter((type) => type !== "null");
  const words = [types.join(" or ") || "any"];
  if (schema.enum) words.push(schema.enum.filter((value) => value !== null).map((value) => `\`${value}\``).join(", "));
  if (schema.minimum !== undefined || schema.maximum !== undefined) words.push(`${schema.minimum ?? ""} to ${schema.maximum ?? ""}`);
  if (schema.pattern) words.push(`\`${schema.pattern}\``);
  if (types[0] === "array" && schema.items) words.push(`of ${[schema.items.type ?? "values"].flat().join(" or ")}s`);
  return words.join(" · ");
}

function table(head, rows) {
  const cells = (tag, row) => row.map((cell) => element(tag, {}, typeof cell === "string" ? inline(cell) : cell));
  return element("div", { class: "wide" }, element("table", {},
    element("thead", {}, element("tr", {}, cells("th", head))),
    element("tbody", {}, rows.map((row) => element("tr", {}, cells("td", row))))));
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The curl command that calls the endpoint with its example. */
function curl(method, path, endpoint, parameters) {
  const examples = Object.fromEntries(parameters.filter((parameter) => parameter.example !== undefined).map((parameter) => [parameter.name, parameter]));
  let target = location.origin + path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(examples[name]?.example ?? name.toUpperCase()));
  const query = Object.values(examples).filter((parameter) => parameter.in === "query");
  if (query.length) target += "?" + query.map((parameter) => `${parameter.name}=${encodeURIComponent(parameter.example)}`).join("&");
  const parts = ["curl -s", quoted(target)];
  for (const parameter of Object.values(examples)) if (parameter.in === "header") parts.push(`-H ${quoted(`${parameter.name}: ${parameter.example}`)}`);
  const content = endpoint.requestBody?.content ?? {};
  if (content["application/json"]?.example) parts.push(`--json ${quoted(JSON.stringify(content["application/json"].example))}`);
  if (content["application/octet-stream"]) parts.push("-H 'Content-Type: application/octet-stream'", "--data-binary @FILE");
  const implied = parts.some((part) => part.startsWith("--")) ? "POST" : "GET";
  if (method.toUpperCase() !== implied) parts.splice(1, 0, `-X ${method.toUpperCase()}`);
  if (endpoint.responses["200"]?.content?.["text/event-stream"]) parts.splice(1, 0, "-N");
  if (endpoint.responses["200"]?.content?.["application/octet-stream"]) parts.push("-D - -o FILE");
  return parts.join(" ");
}

function renderEndpoint(api, path, method, endpoint) {
  const resolve = (value) => value?.$ref ? value.$ref.slice(2).split("/").reduce((at, name) => at[name], api) : value;
  const parameters = (endpoint.parameters ?? []).map(resolve);
  const body = endpoint.requestBody?.content?.["application/json"]?.schema;
  const rows = [
    ...parameters.map((parameter) => [`\`${parameter.name}\``, parameter.in + (parameter.required ? ", required" : ""), kind(parameter.schema), parameter.description]),
    ...Object.entries(body?.properties ?? {}).map(([name, schema]) =>
      [`\`${name}\``, "body" + (body.required?.includes(name) ? ", required" : ""), kind(schema), schema.description]),
  ];
  const [status, success] = Object.entries(endpoint.responses).map(([status, response]) => [status, resolve(response)]).find(([status]) => status === "200");
  const [mediaType, content] = Object.entries(success.content ?? {})[0] ?? [];
  const fields = Object.entries(content?.schema?.properties ?? {});
  return element("section", { class: "endpoint", id: endpoint.operationId },
    element("h3", {}, endpoint.summary),
    element("p", { class: "route" }, element("span", { class: `method ${method}` }, method.toUpperCase()), path),
    prose(endpoint.description),
    rows.length ? table(["parameter", "where", "type", "meaning"], rows.map((row) => row.map((cell) => cell ?? ""))) : null,
    element("h4", {}, `Response ${status}`, mediaType ? `, ${mediaType}` : ""),
    fields.length ? table(["field", "type", "meaning"], fields.map(([name, schema]) => [`\`${name}\``, kind(schema), schema.description ?? ""])) : null,
    content?.example ? block(typeof content.example === "string" ? content.example : JSON.stringify(content.example, null, 2)) : null,
    element("p", { class: "note" }, "Other responses: ", Object.entries(endpoint.responses).filter(([other]) => other !== status)
      .map(([other, response]) => `${other} ${resolve(response).description.replace(/\.$/, "")}`).join(" · ")),
    element("h4", {}, "Try it"),
    block(curl(method, path, endpoint, parameters)));
}

async function render() {
  const state = document.getElementById("state");
  const answer = await fetch("/api-doc/openapi.json");
  if (!answer.ok) throw new Error(`the server returned status ${answer.status}`);
  const api = await answer.json();
  const main = document.getElementById("document");
  const contents = document.getElementById("contents");
  state.replaceWith(...prose(api.info.description), element("p", { class: "note" }, `Version ${api.info.version} · `, element("a", { href: "/api-doc/openapi.json" }, "OpenAPI 3.1")));
  for (const tag of api.tags) {
    const endpoints = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, endpoint]) => [path, method, endpoint]))
      .filter(([, , endpoint]) => endpoint.tags.includes(tag.name));
    if (!endpoints.length) continue;
    contents.append(element("h2", {}, tag.name));
    main.append(element("h2", {}, tag.name[0].toUpperCase() + tag.name.slice(1)), element("p", {}, tag.description));
    for (const [path, method, endpoint] of endpoints) {
      contents.append(element("a", { href: `#${endpoint.operationId}` }, endpoint.summary));
      main.append(renderEndpoint(api, path, method, endpoint));
    }
  }
  if (location.hash) document.querySelector(CSS.escape ? `#${CSS.escape(location.hash.slice(1))}` : location.hash)?.scrollIntoView();
}

render().catch((error) => { document.getElementById("state").textContent = `This page can't be rendered: ${error.message}. Reload it to try again.`; });
