// 3 x 3 convolutions (padding 1, stride 1) of images in channels_last, with 16 multiplications instead of 36. This is
// Winograd's F(2 x 2, 3 x 3), as Lavin and Gray (2016) use it. An output tile y of 2 x 2 pixels is computed from an
// input tile d of 4 x 4 pixels and the weights g. The gradient of the weights is computed from that of y. With * by
// element:
//
//   y  = A' [sum over input channels of (G g G') * (B' d B)] A
//   dg = G' [sum over tiles of (A dy A') * (B' d B)] G
//
//   B' = 1  0 -1  0     G =   1    0    0     A' = 1  1  1  0
//        0  1  1  0         1/2  1/2  1/2          0  1 -1 -1
//        0 -1  1  0         1/2 -1/2  1/2
//        0  1  0 -1           0    0    1
//
// The bracket is a matrix product for each of its 16 points. On average it rounds no worse in float32 than the direct
// sums do. One difference: some pixels around an infinite pixel become NaN, where the direct sums are infinite.
//
// Shapes: x (N, H, W, I), y (N, H, W, O); I and O are multiples of 16.

#include <algorithm>
#include <cstdint>

namespace {

constexpr int64_t kPoints = 16, kIn = 16, kOut = 16;  // channels are processed 16 at a time
constexpr int64_t kRows = 6;                          // of 16 channels each: 12 vectors of sums stay in registers
constexpr int64_t kBlock = 8 * kRows;                 // tiles that are transformed before they are multiplied

typedef float Vector __attribute__((vector_size(32), aligned(4)));

inline Vector load(const float *from) { return *(const Vector *)from; }
inline void store(float *to, Vector value) { *(Vector *)to = value; }

struct Shape {
  int64_t N, H, W, I, O;
  int64_t tiles_h = (H + 1) / 2, tiles_w = (W + 1) / 2, num_tiles = N * tiles_h * tiles_w;
  int64_t weights = kPoints * I * O;                                     // transformed
  int64_t block = std::max(I, O) + kPoints * kBlock * (I + O);           // zeros, and tiles of x and y, transformed
  int64_t gradient_parts(int64_t num_threads) const {                    // each has enough tiles to be worth a thread
    return std::clamp(num_tiles / (2 * kBlock), int64_t{1}, num_threads);
  }
};

// The position of a tile of y: image n; h and w are its first row and column.
struct Tile {
  int64_t n, h, w;
  Tile(const Shape &s, int64_t number)
      : n(number / (s.tiles_h * s.tiles_w)), h(number / s.tiles_w % s.tiles_h * 2), w(number % s.tiles_w * 2) {}
  void advance(const Shape &s) {
    if ((w += 2) < s.W) return;
    w = 0;
    if ((h += 2) < s.H) return;
    h = 0, n++;
  }
};

// Writes G g G' of the 16 output channels from o and the 16 input channels from i to u[point][o / 16][i][16]. If
// transposed, the weights are (I, 3, 3, O) and rotated by 180 degrees, to convolve the gradient of y to that of x.
void transform_weights(const Shape &s, const float *weight, bool transposed, int64_t o, int64_t i, float *u) {
  float g[9][kIn][kOut], rows[4][3][kOut];
  for (int64_t k = 0; k < 9; k++)
    for (int64_t c = 0; c < kOut; c++)
      for (int64_t j = 0; j < kIn; j++)
        g[k][j][c] = transposed ? weight[((i + j) * 9 + 8 - k) * s.O + o + c] : weight[((o + c) * 9 + k) * s.I + i + j];
  const int64_t point = s.I * s.O;
  for (int64_t j = 0; j < kIn; j++) {
    for (int64_t w = 0; w < 3; w++)
      for (int64_t c = 0; c < kOut; c++) {
        const float top = g[w][j][c], middle = g[3 + w][j][c], bottom = g[6 + w][j][c];
        rows[0][w][c] = top;
        rows[1][w][c] = (top + middle + bottom) / 2;
        rows[2][w][c] = (top - middle + bottom) / 2;
        rows[3][w][c] = bottom;
      }
    float *to = u + o * s.I + (i + j) * kOut;
    for (int64_t h = 0; h < 4; h++, to += 4 * point)
      for (int64_t c = 0; c < kOut; c++) {
        const float left = rows[h][0][c], middle = rows[h][1][c], right = rows[h][2][c];
        to[c] = left;
        to[point + c] = (left + middle + right) / 2;
        to[2 * point + c] = (left - middle + right) / 2;
        to[3 * point + c] = right;
      }
  }
}

// Writes a column of B' d B, from that column of d B, for eight channels.
inline void transform_column(Vector first, Vector second, Vector third, Vector fourth, float *v, int64_t point) {
  store(v, first - third);
  store(v + 4 * point, second + third);
  store(v + 8 * point, third - second);
  store(v + 12 * point, second - fourth);
}

// Writes B' d B for eight channels, whose address in a pixel is d(h, w). It works column by column, because all sixteen
// vectors do not fit in registers.
template <class Pixel>
inline void transform_pixels(Pixel d, float *v, int64_t point) {
  const auto minus = [&](int h, int a, int b) { return load(d(h, a)) - load(d(h, b)); };
  const auto plus = [&](int h, int a, int b) { return load(d(h, a)) + load(d(h, b)); };
  transform_column(minus(0, 0, 2), minus(1, 0, 2), minus(2, 0, 2), minus(3, 0, 2), v, point);
  transform_column(plus(0, 1, 2), plus(1, 1, 2), plus(2, 1, 2), plus(3, 1, 2), v + point, point);
  transform_column(minus(0, 2, 1), minus(1, 2, 1), minus(2, 2, 1), minus(3, 2, 1), v + 2 * point, point);
  transform_column(minus(0, 1, 3), minus(1, 1, 3), minus(2, 1, 3), minus(3, 1, 3), v + 3 * point, point);
}

// Writes B' d B of a tile to v[point][tile in its block][I]. Pixels outside the image are zeros.
void transform_input(const Shape &s, const float *x, const Tile &tile, const float *zeros, float *v) {
  const int64_t h = tile.h - 1, w = tile.w - 1, point = kBlock * s.I, row = s.W * s.I, column = s.I;
  const float *image = x + tile.n * s.H * row;
  if (h >= 0 && h + 3 < s.H && w >= 0 && w + 3 < s.W) {
    const float *first = image + h * row + w * column;
    for (int64_t i = 0; i < s.I; i += 8)
      transform_pixels([=](int dh, int dw) { return first + dh * row + dw * column + i; }, v + i, point);
    return;
  }
  const float *pixels[4][4];
  for (int64_t dh = 0; dh < 4; dh++)
    for (int64_t dw = 0; dw < 4; dw++) {
      const bool inside = h + dh >= 0 && h + dh < s.H && w + dw >= 0 && w + dw < s.W;
      pixels[dh][dw] = inside ? image + (h + dh) * row + (w + dw) * column : zeros;
    }
  for (int64_t i = 0; i < s.I; i += 8)
    transform_pixels([&](int dh, int dw) { return pixels[dh][dw] + i; }, v + i, point);
}

// Writes the product of six rows v (6, I) and a panel u (I, 16) to m, whose rows are O apart.
void multiply(const float *__restrict v, const float *__restrict u, float *__restrict m, int64_t I, int64_t O) {
  const float *r0 = v, *r1 = r0 + I, *r2 = r1 + I, *r3 = r2 + I, *r4 = r3 + I, *r5 = r4 + I;
  Vector sums[kRows][2] = {};
  for (int64_t i = 0; i < I; i++, u += kOut) {
    const Vector low = load(u), high = load(u + 8);
    sums[0][0] += low * r0[i], sums[0][1] += high * r0[i];
    sums[1][0] += low * r1[i], sums[1][1] += high * r1[i];
    sums[2][0] += low * r2[i], sums[2][1] += high * r2[i];
    sums[3][0] += low * r3[i], sums[3][1] += high * r3[i];
    sums[4][0] += low * r4[i], sums[4][1] += high * r4[i];
    sums[5][0] += low * r5[i], sums[5][1] += high * r5[i];
  }
#pragma GCC unroll 6
  for (int64_t r = 0; r < kRows; r++) store(m + r * O, sums[r][0]), store(m + r * O + 8, sums[r][1]);
}

// Writes A' m A of a tile's m[point][tile in its block][O] to those pixels of y that are inside the image.
void transform_output(const Shape &s, const float *m, const Tile &tile, float *y) {
  const int64_t point = kBlock * s.O, below = s.W * s.O, right = s.O;
  const bool has_below = tile.h + 1 < s.H, has_right = tile.w + 1 < s.W;
  y += tile.n * s.H * below + tile.h * below + tile.w * right;
  for (int64_t o = 0; o < s.O; o += 8, m += 8, y += 8) {
    Vector top[4], bottom[4];
#pragma GCC unroll 4
    for (int64_t w = 0; w < 4; w++) {
      const Vector second = load(m + (4 + w) * point), third = load(m + (8 + w) * point);
      top[w] = load(m + w * point) + second + third;
      bottom[w] = second - third - load(m + (12 + w) * point);
    }
    store(y, top[0] + top[1] + top[2]);
    if (has_right) store(y + right, top[1] - top[2] - top[3]);
    if (has_below) store(y + below, bottom[0] + bottom[1] + bottom[2]);
    if (has_below && has_right) store(y + below + right, bottom[1] - bottom[2] - bottom[3]);
  }
}

// Writes a column of A dy A', from that column of dy A', for eight channels.
inline void spread_column(Vector top, Vector bottom, float *z, int64_t point) {
  store(z, top);
  store(z + 4 * point, top + bottom);
  store(z + 8 * point, top - bottom);
  store(z + 12 * point, -bottom);
}

// Writes A dy A' of a tile to z[point][tile in its block][O]. Pixels outside the image are zeros.
void spread_output(const Shape &s, const float *dy, const Tile &tile, const float *zeros, float *z) {
  const int64_t point = kBlock * s.O, row = s.W * s.O, column = s.O;
  const bool has_below = tile.h + 1 < s.H, has_right = tile.w + 1 < s.W;
  const float *first = dy + tile.n * s.H * row + tile.h * row + tile.w * column;
  const float *right = has_right ? first + column : zeros, *below = has_below ? first + row : zeros;
  const float *last = has_right && has_below ? first + row + column : zeros;
  for (int64_t o = 0; o < s.O; o += 8, z += 8) {
    const Vector a = load(first + o), b = load(right + o), c = load(below + o), d = load(last + o);
    spread_column(a, c, z, point);
    spread_column(a + b, c + d, z + point, point);
    spread_column(a - b, c - d, z + 2 * point, point);
    spread_column(-b, -d, z + 3 * point, point);
  }
}

// Adds v' (kCount, tiles) times z (tiles, 16), over a block's tiles, to sums (kCount, 16).
template <int kCount>
void add_product(const float *__restrict v, const float *__restrict z, float *__restrict sums, int64_t num_tiles,
                 int64_t I, int64_t O) {
  Vector products[kCount][2] = {};
  for (int64_t t = 0; t < num_tiles; t++, v += I, z += O) {
    const Vector low = load(z), high = load(z + 8);
#pragma GCC unroll 6
    for (int r = 0; r < kCount; r++) products[r][0] += low * v[r], products[r][1] += high * v[r];
  }
#pragma GCC unroll 6
  for (int r = 0; r < kCount; r++, sums += kOut) {
    store(sums, load(sums) + products[r][0]);
    store(sums + 8, load(sums + 8) + products[r][1]);
  }
}

// Writes G' u G of the 16 output channels from o and the input channel i to dw (O, 3, 3, I). Before that,
// u[point][o / 16][i][16] is summed over the parts.
void gather_weights(const Shape &s, const float *u, int64_t num_parts, int64_t part, int64_t o, int64_t i, float *dw) {
  float sums[kPoints][kOut] = {}, rows[3][4][kOut];
  for (int64_t k = 0; k < num_parts; k++)
    for (int64_t point = 0; point < kPoints; point++)
      for (int64_t c = 0; c < kOut; c++) sums[point][c] += u[k * part + (point * s.O + o) * s.I + i * kOut + c];
  for (int64_t w = 0; w < 4; w++)
    for (int64_t c = 0; c < kOut; c++) {
      const float plus = (sums[4 + w][c] + sums[8 + w][c]) / 2, minus = (sums[4 + w][c] - sums[8 + w][c]) / 2;
      rows[0][w][c] = sums[w][c] + plus;
      rows[1][w][c] = minus;
      rows[2][w][c] = plus + sums[12 + w][c];
    }
  for (int64_t h = 0; h < 3; h++)
    for (int64_t c = 0; c < kOut; c++) {
      const float plus = (rows[h][1][c] + rows[h][2][c]) / 2, minus = (rows[h][1][c] - rows[h][2][c]) / 2;
      float *to = dw + ((o + c) * 9 + h * 3) * s.I + i;
      to[0] = rows[h][0][c] + plus;
      to[s.I] = minus;
      to[2 * s.I] = plus + rows[h][3][c];
    }
}

}  // namespace

// The number of floats in the working memory of convolution.
extern "C" int64_t convolution_workspace(int64_t N, int64_t H, int64_t W, int64_t I, int64_t O, int64_t num_threads) {
  const Shape s{N, H, W, I, O};
  return s.weights + num_threads * s.block;
}

// The weights are (O, 3, 3, I), or (I, 3, 3, O) if transposed. Every tile is computed separately and in the same order,
// so the bits do not depend on the number of threads.
extern "C" void convolution(const float *x, const float *weight, float *y, float *workspace, int64_t N, int64_t H,
                            int64_t W, int64_t I, int64_t O, int64_t num_threads, int64_t transposed) {
  const Shape s{N, H, W, I, O};
  float *u = workspace;
#pragma omp parallel for schedule(static) num_threads(num_threads)
  for (int64_t k = 0; k < I / kIn * (O / kOut); k++)
    transform_weights(s, weight, transposed, k / (I / kIn) * kOut, k % (I / kIn) * kIn, u);
#pragma omp parallel for schedule(static) num_threads(num_threads)
  for (int64_t part = 0; part < num_threads; part++) {
    float *zeros = u + s.weights + part * s.block, *v = zeros + std::max(I, O), *m = v + kPoints * kBlock * I;
    std::fill(zeros, v, 0.0f);
    const int64_t end = (part + 1) * s.num_tiles / num_threads;
    for (int64_t first = part * s.num_tiles / num_threads; first < end; first += kBlock) {
      const int64_t num_tiles = std::min(kBlock, end - first);
      Tile tile(s, first);
      for (int64_t t = 0; t < num_tiles; t++, tile.advance(s)) transform_input(s, x, tile, zeros, v + t * I);
      for (int64_t point = 0; point < kPoints; point++)  // rows without a tile are multiplied too
        std::fill(v + (point * kBlock + num_tiles) * I, v + (point + 1) * kBlock * I, 0.0f);
      for (int64_t point = 0; point < kPoints; point++)
        for (int64_t o = 0; o < O; o += kOut)
          for (int64_t t = 0; t < num_tiles; t += kRows)
            multiply(v + (point * kBlock + t) * I, u + (point * O + o) * I, m + (point * kBlock + t) * O + o, I, O);
      tile = Tile(s, first);
      for (int64_t t = 0; t < num_tiles; t++, tile.advance(s)) transform_output(s, m + t * O, tile, y);
    }
  }
}

// The number of floats in the working memory of weight_gradient.
extern "C" int64_t weight_gradient_workspace(int64_t N, int64_t H, int64_t W, int64_t I, int64_t O,
                                             int64_t num_threads) {
  const Shape s{N, H, W, I, O};
  return s.gradient_parts(num_threads) * (s.weights + s.block);
}

// Each part sums over different tiles. The sums of the parts are added in a fixed order, so the same number of threads
// gives the same bits.
extern "C" void weight_gradient(const float *x, const float *dy, float *dw, float *workspace, int64_t N, int64_t H,
                                int64_t W, int64_t I, int64_t O, int64_t num_threads) {
  const Shape s{N, H, W, I, O};
  const int64_t num_parts = s.gradient_parts(num_threads), per_part = s.weights + s.block;
#pragma omp parallel for schedule(static) num_threads(num_parts)
  for (int64_t part = 0; part < num_parts; part++) {
    float *u = workspace + part * per_part, *zeros = u + s.weights;  // u[point][o / 16][i][16]
    float *v = zeros + std::max(I, O), *z = v + kPoints * kBlock * I;
    std::fill(u, v, 0.0f);
    const int64_t end = (part + 1) * s.num_tiles / num_parts;
    for (int64_t first = part * s.num_tiles / num_parts; first < end; first += kBlock) {
      const int64_t num_tiles = std::min(kBlock, end - first);
      Tile tile(s, first);
      for (int64_t t = 0; t < num_tiles; t++, tile.advance(s)) {
        transform_input(s, x, tile, zeros, v + t * I);
        spread_output(s, dy, tile, zeros, z + t * O);
      }
      for (int64_t point = 0; point < kPoints; point++)
        for (int64_t o = 0; o < O; o += kOut)
          for (int64_t i = 0; i < I; i += kIn) {  // 6 + 6 + 4 rows
            const float *rows = v + point * kBlock * I + i, *columns = z + point * kBlock * O + o;
            float *sums = u + (point * O + o) * I + i * kOut;
            add_product<6>(rows, columns, sums, num_tiles, I, O);
            add_product<6>(rows + 6, columns, sums + 6 * kOut, num_tiles, I, O);
            add_product<4>(rows + 12, columns, sums + 12 * kOut, num_tiles, I, O);
          }
    }
  }
#pragma omp parallel for schedule(static) num_threads(num_threads)
  for (int64_t k = 0; k < O / kOut * I; k++)
    gather_weights(s, workspace, num_parts, per_part, k / I * kOut, k % I, dw);
}
