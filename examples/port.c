/* The GPT of docs/guides/port.md in C99: forward, backward and AdamW, without a library. It prints the page's numbers.

   cc -std=c99 -O2 -o port examples/port.c -lm && byhand port $(./port)
   cc -std=c99 -O2 -DREAL=float -o port examples/port.c -lm && byhand port $(./port)

   Arrays are row by row, weights [in, out]. A name with d_ in front holds the gradient of the loss. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef REAL
#define REAL double
#endif
typedef REAL real;

enum { B = 2, T = 6, V = 11, C = 8, F = 32, L = 2, H = 2, D = C / H, N = B * T };
static const real EPS = (real)0.1, K = (real)0.7978845608028654, CUBIC = (real)0.044715; /* K = sqrt(2 / pi) */

static uint32_t x = 7;
static uint32_t next(void) { return x = 1664525u * x + 1013904223u; }

/* ---- Parameters: a table, so that filling, clearing and updating are loops over it ---- */

typedef struct { int size, decays; real *p, *g, *m, *v; } Param; /* value, gradient, the two moments */
typedef struct { Param g1, b1, wqkv, bqkv, wproj, bproj, g2, b2, wfc, bfc, wout, bout; } Block;
static Param wte, wpe, gf, bf, wlm, blm, *table[64];
static Block block[L];
static int params;

static void add(Param *q, int size, int decays, int gain) {
    real *all = calloc(4 * (size_t)size, sizeof(real));
    if (!all) exit(1);
    *q = (Param){size, decays, all, all + size, all + 2 * size, all + 3 * size};
    for (int i = 0; i < size; i++) q->p[i] = (real)(next() / 2147483648.0 - 1 + gain);
    table[params++] = q;
}
static void make_parameters(void) {
    params = 0;
    add(&wte, V * C, 1, 0); add(&wpe, T * C, 1, 0);
    for (int l = 0; l < L; l++) {
        Block *b = &block[l];
        add(&b->g1, C, 0, 1); add(&b->b1, C, 0, 0);
        add(&b->wqkv, C * 3 * C, 1, 0); add(&b->bqkv, 3 * C, 0, 0);
        add(&b->wproj, C * C, 1, 0); add(&b->bproj, C, 0, 0);
        add(&b->g2, C, 0, 1); add(&b->b2, C, 0, 0);
        add(&b->wfc, C * F, 1, 0); add(&b->bfc, F, 0, 0);
        add(&b->wout, F * C, 1, 0); add(&b->bout, C, 0, 0);
    }
    add(&gf, C, 0, 1); add(&bf, C, 0, 0); add(&wlm, C * V, 1, 0); add(&blm, V, 0, 0);
}

/* ---- Equations: each with its derivative, which adds to the gradients that it is given ---- */

static void linear(real *y, const real *a, const Param *w, const Param *b, int rows, int in, int out) {
    for (int n = 0; n < rows; n++)
        for (int o = 0; o < out; o++) {
            real sum = b->p[o];
            for (int i = 0; i < in; i++) sum += a[n * in + i] * w->p[i * out + o];
            y[n * out + o] = sum;
        }
}
static void linear_back(real *d_a, Param *w, Param *b, const real *d_y, const real *a, int rows, int in, int out) {
    for (int n = 0; n < rows; n++)
        for (int o = 0; o < out; o++) {
            real d = d_y[n * out + o];
            b->g[o] += d;
            for (int i = 0; i < in; i++) {
                w->g[i * out + o] += a[n * in + i] * d;
                d_a[n * in + i] += w->p[i * out + o] * d;
            }
        }
}
static void layer_norm(real *y, real *xhat, real *rstd, const real *a, const Param *g, const Param *b) {
    for (int n = 0; n < N; n++) {
        const real *row = a + n * C;
        real mean = 0, var = 0;
        for (int c = 0; c < C; c++) mean += row[c] / C;
        for (int c = 0; c < C; c++) var += (row[c] - mean) * (row[c] - mean) / C;
        rstd[n] = 1 / (real)sqrt(var + EPS);
        for (int c = 0; c < C; c++) {
            xhat[n * C + c] = (row[c] - mean) * rstd[n];
            y[n * C + c] = g->p[c] * xhat[n * C + c] + b->p[c];
        }
    }
}
static void layer_norm_back(real *d_a, Param *g, Param *b, const real *d_y, const real *xhat, const real *rstd) {
    for (int n = 0; n < N; n++) {
        const real *d = d_y + n * C, *hat = xhat + n * C;
        real mean_h = 0, mean_hx = 0;
        for (int c = 0; c < C; c++) {
            real h = d[c] * g->p[c];
            mean_h += h / C;
            mean_hx += h * hat[c] / C;
            g->g[c] += d[c] * hat[c];
            b->g[c] += d[c];
        }
        for (int c = 0; c < C; c++) d_a[n * C + c] += rstd[n] * (d[c] * g->p[c] - mean_h - hat[c] * mean_hx);
    }
}
static real gelu(real a) { return (real)0.5 * a * (1 + (real)tanh(K * (a + CUBIC * a * a * a))); }
static real gelu_slope(real a) {
    real t = (real)tanh(K * (a + CUBIC * a * a * a));
    return (1 + t) / 2 + a / 2 * (1 - t * t) * K * (1 + 3 * CUBIC * a * a);
}

/* ---- The model: one record of what the forward pass keeps, and one of gradients ---- */

typedef struct {
    real h1[N * C], xhat1[N * C], rstd1[N], qkv[N * 3 * C], p[B * H * T * T], merged[N * C], out[N * C], mid[N * C];
    real h2[N * C], xhat2[N * C], rstd2[N], pre[N * F], act[N * F], mlp[N * C], next[N * C];
} Acts;
static Acts acts[L], d_acts[L];
static real first[N * C], d_first[N * C], last[N * C], xhatf[N * C], rstdf[N], d_last[N * C], prob[N * V], d_logits[N * V];
static int tokens[N], targets[N];

/* Where element e of head h stands at row n, in q, k or v (part 0, 1, 2). */
static int at(int n, int part, int h, int e) { return n * 3 * C + part * C + h * D + e; }

static void attention(Acts *a) {
    for (int b = 0; b < B; b++) for (int h = 0; h < H; h++) for (int t = 0; t < T; t++) {
        real *p = a->p + ((b * H + h) * T + t) * T, max = -INFINITY, sum = 0; /* p[s] = 0 for s > t */
        int n = b * T + t;
        for (int s = 0; s <= t; s++) {
            p[s] = 0;
            for (int e = 0; e < D; e++) p[s] += a->qkv[at(n, 0, h, e)] * a->qkv[at(b * T + s, 1, h, e)];
            p[s] /= (real)sqrt(D);
            if (p[s] > max) max = p[s];
        }
        for (int s = 0; s <= t; s++) sum += p[s] = (real)exp(p[s] - max);
        for (int s = 0; s <= t; s++) p[s] /= sum;
        for (int e = 0; e < D; e++) {
            real y = 0;
            for (int s = 0; s <= t; s++) y += p[s] * a->qkv[at(b * T + s, 2, h, e)];
            a->merged[n * C + h * D + e] = y;
        }
    }
}
static void attention_back(Acts *d, const Acts *a) {
    for (int b = 0; b < B; b++) for (int h = 0; h < H; h++) for (int t = 0; t < T; t++) {
        const real *p = a->p + ((b * H + h) * T + t) * T;
        int n = b * T + t;
        real d_p[T], sum = 0;
        for (int s = 0; s <= t; s++) {
            d_p[s] = 0;
            for (int e = 0; e < D; e++) {
                d_p[s] += d->merged[n * C + h * D + e] * a->qkv[at(b * T + s, 2, h, e)];
                d->qkv[at(b * T + s, 2, h, e)] += p[s] * d->merged[n * C + h * D + e];
            }
            sum += d_p[s] * p[s];
        }
        for (int s = 0; s <= t; s++) {
            real d_score = p[s] * (d_p[s] - sum) / (real)sqrt(D);
            for (int e = 0; e < D; e++) {
                d->qkv[at(n, 0, h, e)] += d_score * a->qkv[at(b * T + s, 1, h, e)];
                d->qkv[at(b * T + s, 1, h, e)] += d_score * a->qkv[at(n, 0, h, e)];
            }
        }
    }
}
static double forward(void) {
    const real *s = first;
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++) first[n * C + c] = wte.p[tokens[n] * C + c] + wpe.p[n % T * C + c];
    for (int l = 0; l < L; s = acts[l++].next) {
        Acts *a = &acts[l];
        Block *w = &block[l];
        layer_norm(a->h1, a->xhat1, a->rstd1, s, &w->g1, &w->b1);
        linear(a->qkv, a->h1, &w->wqkv, &w->bqkv, N, C, 3 * C);
        attention(a);
        linear(a->out, a->merged, &w->wproj, &w->bproj, N, C, C);
        for (int i = 0; i < N * C; i++) a->mid[i] = s[i] + a->out[i];
        layer_norm(a->h2, a->xhat2, a->rstd2, a->mid, &w->g2, &w->b2);
        linear(a->pre, a->h2, &w->wfc, &w->bfc, N, C, F);
        for (int i = 0; i < N * F; i++) a->act[i] = gelu(a->pre[i]);
        linear(a->mlp, a->act, &w->wout, &w->bout, N, F, C);
        for (int i = 0; i < N * C; i++) a->next[i] = a->mid[i] + a->mlp[i];
    }
    layer_norm(last, xhatf, rstdf, s, &gf, &bf);
    linear(prob, last, &wlm, &blm, N, C, V); /* the logits, for now */
    double loss = 0;
    for (int n = 0; n < N; n++) {
        real *p = prob + n * V, max = -INFINITY, sum = 0;
        for (int v = 0; v < V; v++) if (p[v] > max) max = p[v];
        real own = p[targets[n]] - max;
        for (int v = 0; v < V; v++) sum += p[v] = (real)exp(p[v] - max);
        for (int v = 0; v < V; v++) p[v] /= sum;
        loss += (log(sum) - own) / N;
    }
    return loss;
}
static double backward(void) {
    for (int j = 0; j < params; j++) memset(table[j]->g, 0, table[j]->size * sizeof(real));
    memset(d_acts, 0, sizeof d_acts); memset(d_first, 0, sizeof d_first); memset(d_last, 0, sizeof d_last);
    for (int n = 0; n < N; n++)
        for (int v = 0; v < V; v++) d_logits[n * V + v] = (prob[n * V + v] - (v == targets[n])) / N;
    linear_back(d_last, &wlm, &blm, d_logits, last, N, C, V);
    layer_norm_back(d_acts[L - 1].next, &gf, &bf, d_last, xhatf, rstdf);
    for (int l = L - 1; l >= 0; l--) {
        Acts *a = &acts[l], *d = &d_acts[l];
        Block *w = &block[l];
        real *d_s = l ? d_acts[l - 1].next : d_first;
        linear_back(d->act, &w->wout, &w->bout, d->next, a->act, N, F, C);
        for (int i = 0; i < N * F; i++) d->pre[i] = d->act[i] * gelu_slope(a->pre[i]);
        linear_back(d->h2, &w->wfc, &w->bfc, d->pre, a->h2, N, C, F);
        for (int i = 0; i < N * C; i++) d->mid[i] = d->next[i];
        layer_norm_back(d->mid, &w->g2, &w->b2, d->h2, a->xhat2, a->rstd2);
        linear_back(d->merged, &w->wproj, &w->bproj, d->mid, a->merged, N, C, C);
        attention_back(d, a);
        linear_back(d->h1, &w->wqkv, &w->bqkv, d->qkv, a->h1, N, C, 3 * C);
        for (int i = 0; i < N * C; i++) d_s[i] += d->mid[i];
        layer_norm_back(d_s, &w->g1, &w->b1, d->h1, a->xhat1, a->rstd1);
    }
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++) {
            wte.g[tokens[n] * C + c] += d_first[n * C + c];
            wpe.g[n % T * C + c] += d_first[n * C + c];
        }
    double squares = 0;
    for (int j = 0; j < params; j++)
        for (int i = 0; i < table[j]->size; i++) squares += (double)table[j]->g[i] * table[j]->g[i];
    return sqrt(squares);
}
static void adamw(int t) {
    const real lr = (real)0.1, beta1 = (real)0.8, beta2 = (real)0.9, eps = (real)1e-3, decay = (real)0.5;
    for (int j = 0; j < params; j++) {
        Param *q = table[j];
        for (int i = 0; i < q->size; i++) {
            q->m[i] = beta1 * q->m[i] + (1 - beta1) * q->g[i];
            q->v[i] = beta2 * q->v[i] + (1 - beta2) * q->g[i] * q->g[i];
            real m_hat = q->m[i] / (1 - (real)pow(beta1, t)), v_hat = q->v[i] / (1 - (real)pow(beta2, t));
            q->p[i] -= lr * (m_hat / ((real)sqrt(v_hat) + eps) + (q->decays ? decay : 0) * q->p[i]);
        }
    }
}

int main(void) {
    make_parameters();
    for (int b = 0, id[T + 1]; b < B; b++) {
        for (int t = 0; t <= T; t++) id[t] = (int)((uint64_t)next() * V >> 32);
        for (int t = 0; t < T; t++) tokens[b * T + t] = id[t], targets[b * T + t] = id[t + 1];
    }
    double loss = forward();
    printf("%.9g %.9g", loss, backward());
    for (int t = 1; t <= 2; t++) {
        adamw(t);
        printf(" %.9g", forward());
        backward();
    }
    x = 7; make_parameters(); /* again, to show that the maximum is subtracted */
    for (int i = 0; i < V; i++) blm.p[i] += 800;
    printf(" %.9g", forward());
    for (int i = 0; i < V; i++) blm.p[i] -= 800;
    for (int l = 0; l < L; l++) for (int i = C; i < 2 * C; i++) block[l].bqkv.p[i] += 800;
    printf(" %.9g\n", forward());
    return 0;
}
