// A classifier of digits, by the interface of MindSpore Lite's models.
#ifndef DIGITS_HPP
#define DIGITS_HPP

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "digits_net.hpp"

class Digits {
 public:
  static const size_t kPixels = 64, kDigits = 10;

  Digits() {
    mindspore::Status status = model_.Build(digits_net_program(), std::make_shared<mindspore::Context>());
    if (status.IsError()) throw std::runtime_error(status.ToString());
    inputs_ = model_.GetInputs();
  }

  // The scores of the ten digits. `pixels` are read where they lie.
  std::vector<float> Scores(const float *pixels) {
    inputs_[0].SetData(const_cast<float *>(pixels));
    mindspore::Status status = model_.Predict(inputs_, &outputs_);
    if (status.IsError()) throw std::runtime_error(status.ToString());
    const float *scores = static_cast<const float *>(outputs_[0].Data().get());
    return std::vector<float>(scores, scores + kDigits);
  }

  int Read(const float *pixels) {
    const std::vector<float> scores = Scores(pixels);
    return static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }

 private:
  mindspore::Model model_;
  std::vector<mindspore::MSTensor> inputs_, outputs_;
};

#endif
