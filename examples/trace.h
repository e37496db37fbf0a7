/* Compares arrays with the trace that `byhand trace` wrote into TRACE, without a library:

   trace("grad/blocks.0.attn.w_qkv", block[0].wqkv.g);

   It prints the name, the largest difference relative to the array's largest number, and where that is. */
#ifndef TRACE
#define TRACE "trace"
#endif
static int trace(const char *wanted, const REAL *mine) { /* 1 if it is right */
    char name[256], type[16];
    size_t size = 0, arrays = 0, begin = 0, worst = 0;
    FILE *index = fopen(TRACE "/index.txt", "r"), *numbers = fopen(TRACE "/arrays.bin", "rb");
    int found = index && numbers && fscanf(index, "%*s %15s %zu %*s", type, &arrays) == 2 &&
        !strcmp(type, sizeof(REAL) == 8 ? "float64" : "float32");
    for (found = found ? 0 : -1; !found && arrays--; begin += found ? 0 : size) {
        if (fscanf(index, "%255s %zu %*s %*s %*s %*s", name, &size) != 2) break;
        found = !strcmp(name, wanted);
    }
    double off = 0, largest = 1e-6;
    if (found == 1 && !fseek(numbers, (long)(begin * sizeof(REAL)), SEEK_SET))
        for (size_t i = 0; i < size; i++) {
            REAL right;
            if (fread(&right, sizeof right, 1, numbers) != 1) { found = -1; break; }
            if (right != right) continue; /* NaN: anything may stand here */
            double d = mine[i] == mine[i] ? fabs((double)(mine[i] - right)) : INFINITY;
            if (fabs((double)right) > largest) largest = fabs((double)right);
            if (d > off) off = d, worst = i;
        }
    if (index) fclose(index);
    if (numbers) fclose(numbers);
    int right = found == 1 && off <= largest * (sizeof(REAL) == 8 ? 1e-9 : 1e-4);
    if (found == 1) printf("%s: %s, off by %.1e at element %zu\n", wanted, right ? "right" : "WRONG", off / largest, worst);
    else printf("%s: %s\n", wanted, found ? "no trace of this type in " TRACE : "the trace has no such array");
    return right;
}
