// The gradient of a 3 x 3 convolution's weights (padding 1, stride S), for images whose channels lie last:
//
//   dw[o][kh][kw][i] = sum over n, h, w of dy[n][h][w][o] * x[n][S h + kh - 1][S w + kw - 1][i]
//
// Shapes: x (N, H, W, I), dy (N, H', W', O), dw (O, 3, 3, I); I is even, O a multiple of 16.
//
// A tile of sums is 16 output channels x 3 horizontal taps x 2 input channels: twelve vectors of eight numbers, which
// stay in registers while pixels pass. A pixel brings two vectors of dy and six numbers of x for twelve multiplications
// and additions of vectors, so that arithmetic and not memory is the limit. Pixels pass in chunks of about 256, packed
// so that a tile reads them one after the other. Each thread sums over images of its own; the threads' sums are added
// in the order of their numbers, so that the same number of threads gives the same bits.

#include <algorithm>
#include <cstring>
#include <omp.h>

namespace {

constexpr int kPixels = 256, kOut = 16, kIn = 2, kTaps = 3, kTile = kTaps * kIn * kOut;

typedef float Vector __attribute__((vector_size(32), aligned(4)));

struct Shape {
  long N, H, W, I, O, S;
  long out_h = (H - 1) / S + 1, out_w = (W - 1) / S + 1;
  long rows = std::clamp(kPixels / out_w, 1L, out_h);          // of an image in a chunk
  long images = std::max(1L, kPixels / (out_w * rows));        // in a chunk
  long padded_h = (rows - 1) * S + 3, padded_w = (out_w - 1) * S + 3;
  long x_panel = images * padded_h * padded_w * kIn;           // two input channels of a chunk
  long dy_panel = images * rows * out_w * kOut;                // 16 output channels of a chunk
  long sums = 9 * I * O;
  long per_thread = sums + I / kIn * x_panel + O / kOut * dy_panel + images * rows * out_w;
};

// Adds to a tile's sums what the pixels bring: dy[p] times x at offset[p].
void add_tile(const float *__restrict x, const float *__restrict dy, const int *__restrict offset, long num_pixels,
              float *__restrict sums) {
  Vector tile[kTaps * kIn][2];
  std::memcpy(tile, sums, sizeof tile);
  for (long p = 0; p < num_pixels; p++, dy += kOut) {
    const float *at = x + offset[p];
    const Vector low = *(const Vector *)dy, high = *(const Vector *)(dy + 8);
#pragma GCC unroll 6
    for (int j = 0; j < kTaps * kIn; j++) {
      tile[j][0] += low * at[j];
      tile[j][1] += high * at[j];
    }
  }
  std::memcpy(sums, tile, sizeof tile);
}

// The padded rows of x that a chunk's output rows from `row` on need, as I / 2 panels [image][row][column][2].
void pack_x(const Shape &s, const float *x, long image, long num_images, long row, long num_rows, float *panels) {
  for (long n = 0; n < num_images; n++)
    for (long h = 0; h < (num_rows - 1) * s.S + 3; h++)
      for (long w = 0; w < s.padded_w; w++) {
        float *to = panels + ((n * s.padded_h + h) * s.padded_w + w) * kIn;
        const long from_h = row * s.S + h - 1, from_w = w - 1;
        const bool inside = from_h >= 0 && from_h < s.H && from_w >= 0 && from_w < s.W;
        const float *from = x + (((image + n) * s.H + from_h) * s.W + from_w) * s.I;
        for (long i = 0; i < s.I; i += kIn, to += s.x_panel)
          inside ? std::memcpy(to, from + i, kIn * sizeof(float)) : std::memset(to, 0, kIn * sizeof(float));
      }
}

// A chunk's pixels of dy as O / 16 panels [pixel][16], and where in a panel of x each pixel's first tap lies.
long pack_dy(const Shape &s, const float *dy, long image, long num_images, long row, long num_rows, float *panels,
             int *offset) {
  long p = 0;
  for (long n = 0; n < num_images; n++)
    for (long h = 0; h < num_rows; h++)
      for (long w = 0; w < s.out_w; w++, p++) {
        offset[p] = ((n * s.padded_h + h * s.S) * s.padded_w + w * s.S) * kIn;
        const float *from = dy + (((image + n) * s.out_h + row + h) * s.out_w + w) * s.O;
        float *to = panels + p * kOut;
        for (long o = 0; o < s.O; o += kOut, to += s.dy_panel) std::memcpy(to, from + o, kOut * sizeof(float));
      }
  return p;
}

}  // namespace

// How many floats of memory weight_gradient works in.
extern "C" long workspace_size(long N, long H, long W, long I, long O, long S, long num_threads) {
  return Shape{N, H, W, I, O, S}.per_thread * num_threads;
}

extern "C" void weight_gradient(const float *x, const float *dy, float *dw, float *workspace, long N, long H, long W,
                                long I, long O, long S, long num_threads) {
  const Shape s{N, H, W, I, O, S};
  const long num_chunks = (N + s.images - 1) / s.images;
  for (long t = 0; t < num_threads; t++) std::fill_n(workspace + t * s.per_thread, s.sums, 0.0f);
#pragma omp parallel num_threads(num_threads)
  {
    float *sums = workspace + omp_get_thread_num() * s.per_thread;
    float *x_panels = sums + s.sums, *dy_panels = x_panels + I / kIn * s.x_panel;
    int *offset = (int *)(dy_panels + O / kOut * s.dy_panel);
#pragma omp for schedule(static)
    for (long chunk = 0; chunk < num_chunks; chunk++) {
      const long image = chunk * s.images, num_images = std::min(s.images, N - image);
      for (long row = 0; row < s.out_h; row += s.rows) {
        const long num_rows = std::min(s.rows, s.out_h - row);
        pack_x(s, x, image, num_images, row, num_rows, x_panels);
        const long num_pixels = pack_dy(s, dy, image, num_images, row, num_rows, dy_panels, offset);
        float *tile = sums;  // [o / 16][kh][i / 2][kw][i % 2][o % 16]
        for (long o = 0; o < O / kOut; o++)
          for (long kh = 0; kh < 3; kh++)
            for (long i = 0; i < I / kIn; i++, tile += kTile)
              add_tile(x_panels + i * s.x_panel + kh * s.padded_w * kIn, dy_panels + o * s.dy_panel, offset,
                       num_pixels, tile);
      }
    }
#pragma omp for schedule(static)
    for (long o = 0; o < O; o++)
      for (long kh = 0; kh < 3; kh++)
        for (long kw = 0; kw < 3; kw++)
          for (long i = 0; i < I; i++) {
            const long tile = ((o / kOut * 3 + kh) * (I / kIn) + i / kIn) * kTile;
            const long at = tile + (kw * kIn + i % kIn) * kOut + o % kOut;
            float sum = 0;
            for (long t = 0; t < num_threads; t++) sum += workspace[t * s.per_thread + at];
            dw[((o * 3 + kh) * 3 + kw) * I + i] = sum;
          }
  }
}
