/** How large the screen is. The style sheet has the same limits. */

/** Whether there is one column, with tabs. */
export const isNarrow = () => innerWidth < 1000;
/** Whether matrices stand below each other. */
export const isPhone = () => innerWidth < 760;
export const isWide = () => innerWidth > 1500;
export const isTall = () => innerHeight > 900;
