"use strict";
/** The link to the other language leads to the same section: both pages have the same ones, under other names. */
{
  const places = [...document.querySelectorAll("article section[id]")];
  const page = ({ pathname }) => pathname.replace(/^.*\/(?:en|zh-CN)\//, "");
  const isOther = (link) => link.pathname !== location.pathname && page(link) === page(location);
  const other = [...document.querySelectorAll("article a[href]")].find(isOther);
  other?.addEventListener("click", () => {
    const step = location.hash && document.querySelector(`.live-anchor[id="${CSS.escape(location.hash.slice(1))}"]`);
    const at = location.hash ? places.findIndex((place) => place.id === decodeURIComponent(location.hash.slice(1))) : -1;
    other.hash = step ? location.hash : at > 0 ? `#section-${at}` : "";
  });
  const asked = location.hash.match(/^#section-(\d+)$/);
  const place = asked && places[Number(asked[1])];
  if (place) location.replace(`#${place.id}`);
}
