"use strict";
/** The link to the other language leads to the same section: both pages have the same ones, under other names. */
{
  const places = [...document.querySelectorAll("article section[id]")];
  const page = ({ pathname }) => pathname.replace(/^.*\/(?:en|zh-CN)\//, "");
  const isOther = (link) => link.pathname !== location.pathname && page(link) === page(location);
  const other = [...document.querySelectorAll("article a[href]")].find(isOther);
  other?.addEventListener("click", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const at = places.indexOf(target?.closest("section[id]"));
    other.hash = target?.matches(".live-anchor") ? location.hash : at > 0 ? `section-${at}` : "";
  });
  const asked = location.hash.match(/^#section-(\d+)$/);
  const place = asked && places[Number(asked[1])];
  if (place) location.replace(`#${place.id}`);
}
