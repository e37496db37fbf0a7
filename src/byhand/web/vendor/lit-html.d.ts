/** What the pages use of lit-html, for `tsc`. */
export type Part = any;
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
export const svg: typeof html;
export const render: (value: any, into: Element) => void;
export const nothing: any;
export const noChange: any;
