// Digits of 64 numbers each on the standard input; prints what each is.
#include <cstdio>

#include "digits.hpp"

int main() {
  Digits digits;
  float pixels[Digits::kPixels];
  size_t count = 0;
  while (std::scanf("%f", &pixels[count]) == 1) {
    if (++count == Digits::kPixels) {
      std::printf("%d\n", digits.Read(pixels));
      count = 0;
    }
  }
  if (count) std::fprintf(stderr, "a digit has 64 pixels, not %zu\n", count);
  return count != 0;
}
