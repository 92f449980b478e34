// Programs compiled ahead of time, called as MindSpore Lite's models are.
//
// `mycel.deploy.cpp(library)` writes a header that describes a program, beside this one. It needs
// C++11 and the standard library; with MYCEL_WITH_DLOPEN, `Model::Build` takes paths of shared
// libraries, too. Copyright and licence are those of Mycel (Apache-2.0).
#ifndef MYCEL_MODEL_HPP
#define MYCEL_MODEL_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#ifdef MYCEL_WITH_DLOPEN
#include <dlfcn.h>
#endif

namespace mycel {

// A tensor that a program reads or writes. `dtype` is one of mindspore::DataType.
struct Argument {
  const char *name;
  int dtype;
  size_t element_bytes;
  size_t rank;
  const int64_t *shape;
};

// A size that may differ from call to call: that of an axis of an input.
struct Size {
  const char *name;
  int64_t least, most, step;
  size_t argument, axis;
};

// A program: `call` takes its sizes, the addresses of inputs and then outputs, and the arena. The
// shapes of arguments are those of the largest sizes; `shapes` writes the sizes of all axes of all
// arguments, one after the other, for given ones.
struct Program {
  int version;
  const char *name;
  size_t input_count, output_count;
  const Argument *arguments;
  size_t size_count;
  const Size *sizes;
  void (*shapes)(const int64_t *sizes, int64_t *axes);
  size_t arena_bytes, arena_align;
  int (*call)(const int64_t *sizes, void *const *tensors, void *arena);
};

enum { kProgramVersion = 2 };

inline int64_t quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline int64_t rest(int64_t a, int64_t b) { return a - b * quotient(a, b); }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

}  // namespace mycel

namespace mindspore {

enum class DataType : int {
  kTypeUnknown = 0,
  kNumberTypeBool = 30,
  kNumberTypeInt8 = 32,
  kNumberTypeInt16 = 33,
  kNumberTypeInt32 = 34,
  kNumberTypeInt64 = 35,
  kNumberTypeUInt8 = 37,
  kNumberTypeUInt16 = 38,
  kNumberTypeUInt32 = 39,
  kNumberTypeUInt64 = 40,
  kNumberTypeFloat16 = 42,
  kNumberTypeFloat32 = 43,
  kNumberTypeFloat64 = 44,
  kNumberTypeBFloat16 = 45
};

enum ModelType { kMindIR = 0, kMindIR_Lite = 4 };

enum StatusCode : uint32_t {
  kSuccess = 0,
  kLiteError = 0xF0000001u,
  kLiteNullptr = 0xF0000002u,
  kLiteParamInvalid = 0xF0000003u,
  kLiteNotSupport = 0xF0000007u,
  kLiteMemoryFailed = 0xF0000009u,
  kLiteOutOfTensorRange = 0xF0000065u,
  kLiteInputTensorError = 0xF00000C9u
};

// What became of a call: a code, and in words what was wrong.
class Status {
 public:
  Status() : code_(kSuccess) {}
  Status(enum StatusCode code, const std::string &what = "") : code_(code), what_(what) {}
  enum StatusCode StatusCode() const { return code_; }
  bool IsOk() const { return code_ == kSuccess; }
  bool IsError() const { return code_ != kSuccess; }
  operator bool() const { return IsOk(); }
  bool operator==(enum StatusCode code) const { return code_ == code; }
  bool operator!=(enum StatusCode code) const { return code_ != code; }
  const std::string &GetErrDescription() const { return what_; }
  std::string ToString() const { return IsOk() ? "Success" : what_; }

 private:
  enum StatusCode code_;
  std::string what_;
};

// How a model runs. Programs run in the thread that calls them.
class Context {
 public:
  Context() : threads_(1) {}
  void SetThreadNum(int32_t threads) { threads_ = threads; }
  int32_t GetThreadNum() const { return threads_; }

 private:
  int32_t threads_;
};

// A tensor: its name, type, shape and data. Copies share the data.
class MSTensor {
 public:
  MSTensor() : dtype_(mindspore::DataType::kTypeUnknown), bytes_(0), count_(0) {}
  MSTensor(const std::string &name, enum DataType dtype, const std::vector<int64_t> &shape, size_t bytes, void *data)
      : name_(name), dtype_(dtype), shape_(shape), bytes_(bytes), count_(1), place_(new Place) {
    for (size_t k = 0; k < shape.size(); k++) count_ *= shape[k];
    place_->given = data;
  }

  const std::string &Name() const { return name_; }
  enum DataType DataType() const { return dtype_; }
  const std::vector<int64_t> &Shape() const { return shape_; }
  int64_t ElementNum() const { return count_; }
  size_t DataSize() const { return bytes_; }

  // The address of the data, which the tensor owns unless SetData gave another.
  void *MutableData() {
    if (!place_) return nullptr;
    if (place_->given) return place_->given;
    if (place_->own.size() < bytes_ + 1) place_->own.resize(bytes_ + 1);
    return place_->own.data();
  }
  std::shared_ptr<const void> Data() {
    return std::shared_ptr<const void>(place_, MutableData());
  }
  // Has the program read or write there, without a copy; the caller keeps the memory.
  void SetData(void *data) {
    if (place_) place_->given = data;
  }
  bool operator==(std::nullptr_t) const { return !place_; }
  bool operator!=(std::nullptr_t) const { return static_cast<bool>(place_); }

 private:
  struct Place {
    void *given = nullptr;
    std::vector<uint8_t> own;
  };
  std::string name_;
  enum DataType dtype_;
  std::vector<int64_t> shape_;
  size_t bytes_;
  int64_t count_;
  std::shared_ptr<Place> place_;
};

// A program with its tensors and memory to work in. Models of one program share what it keeps from
// call to call, as its weights where it trains, and must not run at the same time then.
class Model {
 public:
  Model() : program_(nullptr), library_(nullptr) {}
  ~Model() { Close(); }
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  Status Build(const mycel::Program &program, const std::shared_ptr<Context> &context = nullptr) {
    if (program.version != mycel::kProgramVersion)
      return Status(kLiteNotSupport, std::string(program.name) + ": the program is of another version of this header");
    if (context && context->GetThreadNum() != 1)
      return Status(kLiteNotSupport, std::string(program.name) + ": programs run in one thread; SetThreadNum(1)");
    std::vector<uint8_t> memory(program.arena_bytes + program.arena_align);
    program_ = &program;
    memory_.swap(memory);
    sizes_.clear();
    for (size_t k = 0; k < program.size_count; k++) sizes_.push_back(program.sizes[k].most);
    MakeTensors();
    return kSuccess;
  }

  // Sets the shapes of all inputs, or of some; the others keep theirs. GetInputs and GetOutputs give
  // tensors of the new shapes from then on.
  Status Resize(const std::vector<MSTensor> &inputs, const std::vector<std::vector<int64_t>> &dims) {
    if (!program_) return Status(kLiteNullptr, "Resize: the model is not built");
    if (inputs.size() != dims.size())
      return Status(kLiteInputTensorError, Said("Resize takes as many shapes as tensors"));
    std::vector<std::vector<int64_t>> wanted;
    for (const MSTensor &tensor : inputs_) wanted.push_back(tensor.Shape());
    for (size_t k = 0; k < inputs.size(); k++) {
      size_t place = 0;
      while (place < inputs_.size() && inputs_[place].Name() != inputs[k].Name()) place++;
      if (place == inputs_.size()) return Status(kLiteInputTensorError, Said("no input is " + inputs[k].Name()));
      wanted[place] = dims[k];
    }
    std::vector<int64_t> sizes;
    for (size_t k = 0; k < program_->size_count; k++) {
      const mycel::Size &size = program_->sizes[k];
      const std::vector<int64_t> &shape = wanted[size.argument];
      int64_t value = size.axis < shape.size() ? shape[size.axis] : -1;
      if (value < size.least || value > size.most || (value - size.least) % size.step != 0)
        return Status(kLiteInputTensorError, Said(std::string(size.name) + " is from " + std::to_string(size.least) +
                                                  " to " + std::to_string(size.most) + " in steps of " +
                                                  std::to_string(size.step) + ", not ") +
                                                 std::to_string(value));
      sizes.push_back(value);
    }
    std::vector<int64_t> axes = Axes(sizes);
    size_t at = 0;
    for (size_t k = 0; k < wanted.size(); k++) {
      size_t rank = program_->arguments[k].rank;
      if (wanted[k].size() != rank || !std::equal(wanted[k].begin(), wanted[k].end(), axes.begin() + at))
        return Status(kLiteInputTensorError, Said("the shape of input " + inputs_[k].Name() + " does not fit the others"));
      at += rank;
    }
    sizes_.swap(sizes);
    MakeTensors();
    return kSuccess;
  }

#ifdef MYCEL_WITH_DLOPEN
  // Builds the program of a shared library, which MYCEL_EXPORT_PROGRAM made of an object.
  Status Build(const std::string &path, ModelType, const std::shared_ptr<Context> &context = nullptr) {
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return Status(kLiteError, dlerror());
    void *found = dlsym(library, "mycel_program");
    const mycel::Program *(*get)() = nullptr;
    std::memcpy(&get, &found, sizeof get);
    Status status = get ? Build(*get(), context) : Status(kLiteParamInvalid, path + ": no library of a program");
    if (status.IsError()) {
      dlclose(library);
      return status;
    }
    Close();
    library_ = library;
    return status;
  }
#endif

  std::vector<MSTensor> GetInputs() const { return inputs_; }
  std::vector<MSTensor> GetOutputs() const { return outputs_; }
  MSTensor GetInputByTensorName(const std::string &name) const { return Named(inputs_, name); }
  MSTensor GetOutputByTensorName(const std::string &name) const { return Named(outputs_, name); }

  // Computes the outputs; inputs are in the order of GetInputs, and may be other tensors of their types.
  Status Predict(const std::vector<MSTensor> &inputs, std::vector<MSTensor> *outputs) {
    if (!program_) return Status(kLiteNullptr, "Predict: the model is not built");
    if (!outputs) return Status(kLiteNullptr, "Predict: no place for outputs");
    if (inputs.size() != inputs_.size())
      return Status(kLiteInputTensorError, Said("takes " + std::to_string(inputs_.size()) + " inputs, not ") +
                                               std::to_string(inputs.size()));
    std::vector<void *> places;
    for (size_t k = 0; k < inputs.size(); k++) {
      const MSTensor &want = inputs_[k];
      if (inputs[k].DataType() != want.DataType() || inputs[k].Shape() != want.Shape())
        return Status(kLiteInputTensorError, Said("the shape or type of input " + want.Name() + " is another"));
      places.push_back(MSTensor(inputs[k]).MutableData());
    }
    for (size_t k = 0; k < outputs_.size(); k++) places.push_back(outputs_[k].MutableData());
    uintptr_t start = reinterpret_cast<uintptr_t>(memory_.data());
    size_t skipped = (program_->arena_align - start % program_->arena_align) % program_->arena_align;
    if (program_->call(sizes_.data(), places.data(), memory_.data() + skipped) != 0)
      return Status(kLiteOutOfTensorRange, Said("an index was out of range"));
    *outputs = outputs_;
    return kSuccess;
  }

 private:
  // The sizes of all axes of all arguments.
  std::vector<int64_t> Axes(const std::vector<int64_t> &sizes) const {
    std::vector<int64_t> axes;
    for (size_t k = 0; k < program_->input_count + program_->output_count; k++)
      axes.insert(axes.end(), program_->arguments[k].shape, program_->arguments[k].shape + program_->arguments[k].rank);
    if (program_->shapes) program_->shapes(sizes.data(), axes.data());
    return axes;
  }

  void MakeTensors() {
    std::vector<int64_t> axes = Axes(sizes_);
    std::vector<int64_t>::const_iterator next = axes.begin();
    inputs_.clear();
    outputs_.clear();
    for (size_t k = 0; k < program_->input_count + program_->output_count; k++) {
      const mycel::Argument &a = program_->arguments[k];
      std::vector<int64_t> shape(next, next + a.rank);
      next += a.rank;
      size_t bytes = a.element_bytes;
      for (size_t d = 0; d < a.rank; d++) bytes *= static_cast<size_t>(shape[d]);
      (k < program_->input_count ? inputs_ : outputs_)
          .push_back(MSTensor(a.name, static_cast<enum DataType>(a.dtype), shape, bytes, nullptr));
    }
  }

  static MSTensor Named(const std::vector<MSTensor> &tensors, const std::string &name) {
    for (size_t k = 0; k < tensors.size(); k++)
      if (tensors[k].Name() == name) return tensors[k];
    return MSTensor();
  }

  std::string Said(const std::string &what) const { return std::string(program_->name) + ": " + what; }

  void Close() {
#ifdef MYCEL_WITH_DLOPEN
    if (library_) dlclose(library_);
#endif
    library_ = nullptr;
  }

  const mycel::Program *program_;
  std::vector<uint8_t> memory_;
  std::vector<int64_t> sizes_;
  std::vector<MSTensor> inputs_, outputs_;
  void *library_;
};

}  // namespace mindspore

// In one file of a shared library: makes Model::Build find its program.
#define MYCEL_EXPORT_PROGRAM(name) \
  extern "C" const mycel::Program *mycel_program() { return &name##_program(); }

#endif
