// The gradient of a 3 x 3 convolution's weights (padding 1, stride S), for images whose channels lie last:
//
//   dw[o][kh][kw][i] = sum over n, h, w of dy[n][h][w][o] * x[n][S h + kh - 1][S w + kw - 1][i]
//
// Shapes: x (N, H, W, I), dy (N, H', W', O), dw (O, 3, 3, I); I is even, O a multiple of 16.
//
// A tile of sums is 16 output channels x 3 horizontal taps x 2 input channels: twelve vectors of eight numbers, which
// stay in registers while pixels pass. A pixel brings two vectors of dy and six numbers of x for twelve multiplications
// and additions of vectors, so that arithmetic and not memory is the limit. Pixels pass in chunks of some 256, whole rows
// of one or more images, packed so that a tile reads them one after the other. Each thread sums over chunks of its own;
// the threads' sums are added in the order of their numbers, so that the same number of threads gives the same bits.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <omp.h>

namespace {

constexpr int64_t kPixels = 256, kOut = 16, kIn = 2, kTaps = 3, kTile = kTaps * kIn * kOut;

typedef float Vector __attribute__((vector_size(32), aligned(4)));

struct Shape {
  int64_t N, H, W, I, O, S;
  int64_t out_h = (H - 1) / S + 1, out_w = (W - 1) / S + 1;
  int64_t rows = std::clamp(kPixels / out_w, int64_t{1}, out_h);        // of an image in a chunk
  int64_t images = std::max(int64_t{1}, kPixels / (out_w * rows));      // in a chunk
  int64_t num_chunks = (N + images - 1) / images;                       // of images: a thread takes them whole
  int64_t padded_h = (rows - 1) * S + kTaps, padded_w = (out_w - 1) * S + kTaps;
  int64_t x_panel = images * padded_h * padded_w * kIn;                 // two input channels of a chunk
  int64_t dy_panel = images * rows * out_w * kOut;                      // 16 output channels of a chunk
  int64_t sums = kTaps * kTaps * I * O;
  int64_t per_thread = sums + I / kIn * x_panel + O / kOut * dy_panel + images * rows * out_w;
};

// Adds to a tile's sums what a chunk's pixels bring: dy[p] times x at offset[p].
void add_tile(const float *__restrict x, const float *__restrict dy, const int32_t *__restrict offset,
              int64_t num_pixels, float *__restrict sums) {
  Vector tile[kTaps * kIn][2] = {};
  for (int64_t p = 0; p < num_pixels; p++, dy += kOut) {
    const float *at = x + offset[p];
    const Vector low = *(const Vector *)dy, high = *(const Vector *)(dy + 8);
#pragma GCC unroll 6
    for (int j = 0; j < kTaps * kIn; j++) {
      tile[j][0] += low * at[j];
      tile[j][1] += high * at[j];
    }
  }
  for (int j = 0; j < kTaps * kIn; j++)
    for (int half = 0; half < 2; half++) *(Vector *)(sums + j * kOut + half * 8) += tile[j][half];
}

// The padded rows of x that a chunk's output rows from `row` on need, as I / 2 panels [image][row][column][2].
void pack_x(const Shape &s, const float *x, int64_t image, int64_t num_images, int64_t row, int64_t num_rows,
            float *panels) {
  for (int64_t n = 0; n < num_images; n++)
    for (int64_t h = 0; h < (num_rows - 1) * s.S + kTaps; h++)
      for (int64_t w = 0; w < s.padded_w; w++) {
        float *to = panels + ((n * s.padded_h + h) * s.padded_w + w) * kIn;
        const int64_t from_h = row * s.S + h - 1, from_w = w - 1;
        if (from_h < 0 || from_h >= s.H || from_w < 0 || from_w >= s.W) {
          for (int64_t i = 0; i < s.I; i += kIn, to += s.x_panel) std::memset(to, 0, kIn * sizeof(float));
        } else {
          const float *from = x + (((image + n) * s.H + from_h) * s.W + from_w) * s.I;
          for (int64_t i = 0; i < s.I; i += kIn, to += s.x_panel) std::memcpy(to, from + i, kIn * sizeof(float));
        }
      }
}

// A chunk's pixels of dy as O / 16 panels [pixel][16], and where in a panel of x each pixel's first tap lies; returns
// how many pixels there are.
int64_t pack_dy(const Shape &s, const float *dy, int64_t image, int64_t num_images, int64_t row, int64_t num_rows,
                float *panels, int32_t *offset) {
  int64_t p = 0;
  for (int64_t n = 0; n < num_images; n++)
    for (int64_t h = 0; h < num_rows; h++)
      for (int64_t w = 0; w < s.out_w; w++, p++) {
        offset[p] = ((n * s.padded_h + h * s.S) * s.padded_w + w * s.S) * kIn;
        const float *from = dy + (((image + n) * s.out_h + row + h) * s.out_w + w) * s.O;
        float *to = panels + p * kOut;
        for (int64_t o = 0; o < s.O; o += kOut, to += s.dy_panel) std::memcpy(to, from + o, kOut * sizeof(float));
      }
  return p;
}

}  // namespace

// How many floats of memory weight_gradient works in.
extern "C" int64_t weight_gradient_workspace(int64_t N, int64_t H, int64_t W, int64_t I, int64_t O, int64_t S,
                                             int64_t num_threads) {
  const Shape s{N, H, W, I, O, S};
  return s.per_thread * std::min(num_threads, s.num_chunks);
}

extern "C" void weight_gradient(const float *x, const float *dy, float *dw, float *workspace, int64_t N, int64_t H,
                                int64_t W, int64_t I, int64_t O, int64_t S, int64_t num_threads) {
  const Shape s{N, H, W, I, O, S};
  const int64_t num_parts = std::min(num_threads, s.num_chunks);
#pragma omp parallel for schedule(static) num_threads(num_parts)
  for (int64_t part = 0; part < num_parts; part++) {
    float *sums = workspace + part * s.per_thread;
    float *x_panels = sums + s.sums, *dy_panels = x_panels + I / kIn * s.x_panel;
    int32_t *offset = (int32_t *)(dy_panels + O / kOut * s.dy_panel);
    std::fill_n(sums, s.sums, 0.0f);
    for (int64_t chunk = part * s.num_chunks / num_parts; chunk < (part + 1) * s.num_chunks / num_parts; chunk++) {
      const int64_t image = chunk * s.images, num_images = std::min(s.images, N - image);
      for (int64_t row = 0; row < s.out_h; row += s.rows) {
        const int64_t num_rows = std::min(s.rows, s.out_h - row);
        pack_x(s, x, image, num_images, row, num_rows, x_panels);
        const int64_t num_pixels = pack_dy(s, dy, image, num_images, row, num_rows, dy_panels, offset);
        float *tile = sums;  // [o / 16][kh][i / 2][kw][i % 2][o % 16]
        for (int64_t o = 0; o < O / kOut; o++)
          for (int64_t kh = 0; kh < kTaps; kh++)
            for (int64_t i = 0; i < I / kIn; i++, tile += kTile)
              add_tile(x_panels + i * s.x_panel + kh * s.padded_w * kIn, dy_panels + o * s.dy_panel, offset,
                       num_pixels, tile);
      }
    }
  }
#pragma omp parallel for schedule(static) num_threads(num_threads)
  for (int64_t o = 0; o < O; o++)
    for (int64_t kh = 0; kh < kTaps; kh++)
      for (int64_t kw = 0; kw < kTaps; kw++)
        for (int64_t i = 0; i < I; i++) {
          const int64_t tile = ((o / kOut * kTaps + kh) * (I / kIn) + i / kIn) * kTile;
          const int64_t at = tile + (kw * kIn + i % kIn) * kOut + o % kOut;
          float sum = 0;
          for (int64_t part = 0; part < num_parts; part++) sum += workspace[part * s.per_thread + at];
          dw[((o * kTaps + kh) * kTaps + kw) * I + i] = sum;
        }
}
