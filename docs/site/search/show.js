"use strict";
/** The search page: the answers of `where` above the pages that have the question's words. */
{
  const SHOWN = 8;
  const box = document.getElementById("where-answers");
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const said = JSON.parse(box.dataset.said);
  const make = (tag, text = "", facts = {}) => Object.assign(document.createElement(tag), { textContent: text, ...facts });
  const title = (number) => {
    const [, words, , address] = whereIndex.answers[number];
    return make(address ? "a" : "b", words, address ? { href: address } : {});
  };
  const answer = (number) => {
    const [name, , kind, , lines, command, see] = whereIndex.answers[number];
    const item = make("li");
    item.dataset.name = name;
    item.append(title(number), " ", make("small", said[kind]), ...lines.map((line) => make("p", line)));
    if (command) item.append(make("p"));
    if (command) item.lastChild.append(make("code", command));
    const others = see.map((other) => whereIndex.answers.findIndex(([own]) => own === other)).filter((other) => other >= 0);
    if (others.length) item.append(make("p", `${said.see} `));
    others.forEach((other, k) => item.lastChild.append(k ? " · " : "", title(other)));
    return item;
  };
  if (query.trim()) {
    const found = where.search(query);
    const list = make("ol");
    list.append(...found.slice(0, SHOWN).map(answer));
    box.append(make("h1", found.length ? said.answers : said.none), list);
    document.querySelectorAll("input[name=q]").forEach((input) => (input.value = query));
  }
}
