// V8's REPL mode, which is available only through the inspector: evaluates a source as a console does, and returns the promise of its result.
//
// The inspector is made for remote debuggers and uses JSON messages. This file wraps it in three C functions, so that values are passed by
// handle and never as JSON.

#include <cstdint>
#include <cstring>
#include <memory>

#include "v8-inspector.h"
#include "v8.h"

namespace {

using v8_inspector::StringBuffer;
using v8_inspector::StringView;
using v8_inspector::V8Inspector;
using v8_inspector::V8InspectorClient;
using v8_inspector::V8InspectorSession;

constexpr int kGroup = 1;

class Client final : public V8InspectorClient {};

class Answers final : public V8Inspector::Channel {
 public:
  std::unique_ptr<StringBuffer> last;

 private:
  void sendResponse(int, std::unique_ptr<StringBuffer> message) override { last = std::move(message); }
  void sendNotification(std::unique_ptr<StringBuffer>) override {}
  void flushProtocolNotifications() override {}
};

template <class T>
v8::Local<T> LocalFrom(const T* pointer) {
  v8::Local<T> local;
  static_assert(sizeof(local) == sizeof(pointer));
  std::memcpy(static_cast<void*>(&local), &pointer, sizeof(pointer));
  return local;
}

}  // namespace

struct Repl {
  Client client;
  Answers answers;
  std::unique_ptr<V8Inspector> inspector;
  // Connected ahead of the next evaluation, and ended by it.
  std::unique_ptr<V8InspectorSession> session;

  void Connect() { session = inspector->connect(kGroup, &answers, StringView(), V8Inspector::kFullyTrusted); }
};

namespace {

// The first promise that is created while a source is evaluated is the promise of its completion.
thread_local v8::Global<v8::Promise>* wanted_promise = nullptr;

void OnPromise(v8::PromiseHookType type, v8::Local<v8::Promise> promise, v8::Local<v8::Value>) {
  if (type != v8::PromiseHookType::kInit || !wanted_promise) return;
  v8::Isolate* isolate = v8::Isolate::GetCurrent();
  wanted_promise->Reset(isolate, promise);
  wanted_promise = nullptr;
  isolate->SetPromiseHook(nullptr);  // a hook slows down every promise
}

}  // namespace

extern "C" {

Repl* heapstead_repl_new(v8::Isolate* isolate, const v8::Context* context) {
  v8::TryCatch ignored(isolate);  // a getter that code defined on `console` may throw
  auto* repl = new Repl;
  repl->inspector = V8Inspector::create(isolate, &repl->client);
  repl->inspector->contextCreated({LocalFrom(context), kGroup, StringView()});
  return repl;
}

// Evaluates the source in the protocol message, up to the first `await`. Returns the promise of the completion value. If it returns null, the
// source did not compile, and `*answer` and `*answer_length` are the inspector's response, valid until the next call, 16-bit if `*answer_wide`.
//
// The inspector session ends with the call, so no other part of the inspector has access to values, or reads the stacks of their errors.
const v8::Promise* heapstead_repl_evaluate(Repl* repl, v8::Isolate* isolate, const void* message, size_t length, bool wide,
                                           const void** answer, size_t* answer_length, bool* answer_wide) {
  v8::Global<v8::Promise> promise;
  repl->answers.last.reset();
  if (!repl->session) repl->Connect();
  wanted_promise = &promise;
  isolate->SetPromiseHook(OnPromise);
  repl->session->dispatchProtocolMessage(wide ? StringView(static_cast<const uint16_t*>(message), length)
                                        : StringView(static_cast<const uint8_t*>(message), length));
  isolate->SetPromiseHook(nullptr);
  wanted_promise = nullptr;
  repl->session.reset();
  StringView view = repl->answers.last ? repl->answers.last->string() : StringView();
  *answer_wide = !view.is8Bit();
  *answer_length = view.length();
  *answer = view.is8Bit() ? static_cast<const void*>(view.characters8()) : view.characters16();
  return promise.IsEmpty() ? nullptr : *promise.Get(isolate);
}

// Whether a source is being compiled, and none of it has run: its promise is made first.
bool heapstead_repl_is_compiling() { return wanted_promise != nullptr; }

void heapstead_repl_prepare(Repl* repl) {
  if (!repl->session) repl->Connect();
}

void heapstead_set_stack_limit(v8::Isolate* isolate, uintptr_t limit) { isolate->SetStackLimit(limit); }

void heapstead_repl_delete(Repl* repl, const v8::Context* context) {
  repl->session.reset();
  repl->inspector->contextDestroyed(LocalFrom(context));
  delete repl;
}
}
