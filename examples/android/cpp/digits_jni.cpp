// What Digits.java calls. A classifier lives as long as its object of Java, which holds its address.
#include <jni.h>

#include "digits.hpp"

static void raise(JNIEnv *env, const char *kind, const char *said) {
  jclass type = env->FindClass(kind);
  if (type != nullptr) env->ThrowNew(type, said);
}

extern "C" JNIEXPORT jlong JNICALL Java_org_mycel_digits_Digits_open(JNIEnv *env, jclass) {
  try {
    return reinterpret_cast<jlong>(new Digits());
  } catch (const std::exception &error) {
    raise(env, "java/lang/IllegalStateException", error.what());
    return 0;
  }
}

extern "C" JNIEXPORT void JNICALL Java_org_mycel_digits_Digits_close(JNIEnv *, jclass, jlong digits) {
  delete reinterpret_cast<Digits *>(digits);
}

extern "C" JNIEXPORT jint JNICALL Java_org_mycel_digits_Digits_read(JNIEnv *env, jclass, jlong digits,
                                                                   jfloatArray pixels) {
  if (digits == 0) {
    raise(env, "java/lang/IllegalStateException", "the classifier is closed");
    return -1;
  }
  if (pixels == nullptr || env->GetArrayLength(pixels) != static_cast<jsize>(Digits::kPixels)) {
    raise(env, "java/lang/IllegalArgumentException", "a digit has 64 pixels");
    return -1;
  }
  jfloat *content = env->GetFloatArrayElements(pixels, nullptr);
  if (content == nullptr) return -1;
  int found = -1;
  try {
    found = reinterpret_cast<Digits *>(digits)->Read(content);
  } catch (const std::exception &error) {
    raise(env, "java/lang/IllegalStateException", error.what());
  }
  env->ReleaseFloatArrayElements(pixels, content, JNI_ABORT);
  return found;
}
