"use strict";
/** The site's root leads to the reader's language. */
location.replace(navigator.language.startsWith("zh") ? "zh-CN/index.html" : "en/index.html");
