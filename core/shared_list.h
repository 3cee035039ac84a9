#pragma once
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace rivulet {

/// An immutable list, shared by its copies. The member list of a view exists once, even if many devices of
/// one process keep the view. Thread-safe to read and to copy.
template <class T>
class SharedList {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;

  SharedList() : SharedList(none()) {}
  SharedList(std::vector<T> items) : items_(std::make_shared<const std::vector<T>>(std::move(items))) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}

  [[nodiscard]] const_iterator begin() const noexcept { return items_->begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return items_->end(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_->size(); }
  [[nodiscard]] bool empty() const noexcept { return items_->empty(); }
  [[nodiscard]] const T& operator[](std::size_t i) const { return (*items_)[i]; }
  [[nodiscard]] const T& front() const { return items_->front(); }
  [[nodiscard]] const std::vector<T>& list() const noexcept { return *items_; }
  operator const std::vector<T>&() const noexcept { return *items_; }

  bool operator==(const SharedList& other) const {
    return items_ == other.items_ || *items_ == *other.items_;
  }
  bool operator==(const std::vector<T>& other) const { return *items_ == other; }

 private:
  explicit SharedList(std::shared_ptr<const std::vector<T>> items) : items_(std::move(items)) {}
  static const std::shared_ptr<const std::vector<T>>& none() {
    static const auto empty = std::make_shared<const std::vector<T>>();
    return empty;
  }
  std::shared_ptr<const std::vector<T>> items_;
};

}  // namespace rivulet
