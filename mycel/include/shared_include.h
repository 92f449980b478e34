// The interface of libraries that `dataset.transforms.Plugin` loads, with MindSpore's names.
//
// A library defines GetInstance, whose object returns operations by name. An operation takes its
// arguments as text, once, and then rows of tensors. Nothing may throw: what fails returns
// Status::Error with a reason. Objects belong to the library. Several threads may call Compute at
// the same time.
//
//     g++ -std=c++17 -O2 -shared -fPIC -I DIRECTORY_OF_THIS_FILE filters.cc -o libfilters.so
//
// Virtual functions and members have fixed places: changing their order breaks libraries that exist.
#ifndef MYCEL_SHARED_INCLUDE_H
#define MYCEL_SHARED_INCLUDE_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mindspore {
namespace dataset {
namespace plugin {

static constexpr char kSharedIncludeVersion[] = "0.5.6";

// What a library makes.
class PluginBase {
 protected:
  virtual ~PluginBase() noexcept = default;
};

// What the framework makes; none is given today.
class MindDataBase {
 protected:
  virtual ~MindDataBase() noexcept = default;
};

class MindDataManagerBase : public MindDataBase {
 public:
  virtual MindDataBase *GetModule(const std::string &name) noexcept = 0;
};

// Success, or a reason why there is none.
class Status : PluginBase {
 public:
  static Status OK() noexcept { return Status(true, {}); }
  static Status Error(const std::string &reason) noexcept { return Status(false, reason); }
  Status(const Status &) = default;
  Status(Status &&) = default;
  bool IsOk() const noexcept { return good_; }
  const std::string &ToString() const noexcept { return reason_; }

 private:
  Status(bool good, const std::string &reason) noexcept : good_(good), reason_(reason) {}
  const bool good_;
  const std::string reason_;
};

// An array: its elements in row-major order, its sizes (none for a number), and its type, one of
// "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
// "float32", "float64"; arguments may also be one text, of type "string". Offsets are not used.
class Tensor : public PluginBase {
 public:
  std::vector<unsigned char> buffer_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> offsets_;
  std::string type_;
};

class TensorOp : public PluginBase {
 public:
  virtual Status ParseSerializedArgs(const std::string &arguments) noexcept = 0;
  virtual Status Compute(std::vector<Tensor> *row, std::vector<Tensor> *result) noexcept = 0;
};

class PluginManagerBase : public PluginBase {
 public:
  virtual std::string GetPluginVersion() noexcept = 0;
  // Names of operations by kind, for messages.
  virtual std::map<std::string, std::set<std::string>> GetModuleNames() noexcept = 0;
  // An operation, or a null pointer where there is none of this name.
  virtual PluginBase *GetModule(const std::string &name) noexcept = 0;
};

extern "C" PluginManagerBase *GetInstance(MindDataManagerBase *framework);
extern "C" void DestroyInstance();

}  // namespace plugin
}  // namespace dataset
}  // namespace mindspore

#endif  // MYCEL_SHARED_INCLUDE_H
