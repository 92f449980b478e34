// A library of operations for pipelines, as a user would write one.
#include <cstdlib>
#include <memory>
#include <sstream>

#include "shared_include.h"

using namespace mindspore::dataset::plugin;

namespace {

// The arguments and the bytes of what came, as text in one tensor of uint8.
struct Show : TensorOp {
  std::string arguments;

  Status ParseSerializedArgs(const std::string &text) noexcept override {
    arguments = text;
    return text == "bad" ? Status::Error("these arguments cannot be read") : Status::OK();
  }

  Status Compute(std::vector<Tensor> *row, std::vector<Tensor> *result) noexcept override {
    std::ostringstream said;
    said << arguments;
    for (auto &tensor : *row) {
      said << "|" << tensor.type_;
      for (auto size : tensor.shape_) said << " " << size;
      said << ":" << tensor.offsets_.size();
      for (int byte : tensor.buffer_) said << " " << byte;
    }
    std::string text = said.str();
    Tensor made;
    made.buffer_.assign(text.begin(), text.end());
    made.shape_ = {static_cast<int64_t>(text.size())};
    made.type_ = "uint8";
    result->push_back(made);
    return Status::OK();
  }
};

// The whole row is exchanged for the result.
struct Same : TensorOp {
  Status ParseSerializedArgs(const std::string &) noexcept override { return Status::OK(); }
  Status Compute(std::vector<Tensor> *row, std::vector<Tensor> *result) noexcept override {
    result->swap(*row);
    return Status::OK();
  }
};

// Moved, and copied once more; what was returned before is kept.
struct Twice : TensorOp {
  std::vector<Tensor> before;

  Status ParseSerializedArgs(const std::string &) noexcept override { return Status::OK(); }
  Status Compute(std::vector<Tensor> *row, std::vector<Tensor> *result) noexcept override {
    for (auto &tensor : *row) result->push_back(std::move(tensor));
    for (size_t i = 0, count = result->size(); i < count; i++) result->push_back(Tensor((*result)[i]));
    before = *result;
    return Status::OK();
  }
};

// A tensor of a type, a number of bytes and a shape, which its arguments say.
struct Make : TensorOp {
  std::string type;
  long bytes = 0;
  std::vector<int64_t> shape;

  Status ParseSerializedArgs(const std::string &text) noexcept override {
    std::istringstream words(text);
    words >> type >> bytes;
    for (int64_t size; words >> size;) shape.push_back(size);
    return Status::OK();
  }

  Status Compute(std::vector<Tensor> *, std::vector<Tensor> *result) noexcept override {
    Tensor made;
    made.type_ = type;
    made.shape_ = shape;
    for (long i = 0; i < bytes; i++) made.buffer_.push_back(static_cast<unsigned char>(i + 1));
    result->push_back(made);
    return Status::OK();
  }
};

struct Fail : TensorOp {
  Status ParseSerializedArgs(const std::string &) noexcept override { return Status::OK(); }
  Status Compute(std::vector<Tensor> *, std::vector<Tensor> *) noexcept override {
    return Status::Error("this row is more than the library can take");
  }
};

class Manager : public PluginManagerBase {
 public:
  std::string GetPluginVersion() noexcept override { return VERSION; }

  std::map<std::string, std::set<std::string>> GetModuleNames() noexcept override {
    return {{"TensorOp", {"Same", "Show"}}, {"More of them", {"Make", "Twice", "Fail"}}};
  }

  PluginBase *GetModule(const std::string &name) noexcept override {
    TensorOp *found = name == "Show"    ? static_cast<TensorOp *>(new Show)
                      : name == "Same"  ? static_cast<TensorOp *>(new Same)
                      : name == "Twice" ? static_cast<TensorOp *>(new Twice)
                      : name == "Make"  ? static_cast<TensorOp *>(new Make)
                      : name == "Fail"  ? static_cast<TensorOp *>(new Fail)
                                        : nullptr;
    if (found) made_.emplace_back(found);
    return found;
  }

 private:
  std::vector<std::unique_ptr<TensorOp>> made_;
};

std::unique_ptr<Manager> manager;

}  // namespace

PluginManagerBase *mindspore::dataset::plugin::GetInstance(MindDataManagerBase *) {
  if (!manager) manager = std::make_unique<Manager>();
  return manager.get();
}

void mindspore::dataset::plugin::DestroyInstance() { manager.reset(); }
