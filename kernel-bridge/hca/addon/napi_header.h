// node-addon-api, whose inline code does not compile cleanly with -Wshadow.
//
// An isolate may be terminated (worker.terminate) while any function of this addon runs. JavaScript then cannot receive
// an exception, and without the macro the library would abort the process.
#pragma once
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <napi.h>
#pragma GCC diagnostic pop
