/* The runtime: device, contexts, memory, streams, events, callbacks.
 *
 * Common to all functions here:
 *   - null pointers and unknown enumerators give ACL_ERROR_INVALID_PARAM; these checks come first;
 *   - then functions that need a context give ACL_ERROR_RT_CONTEXT_NULL when none is current on the
 *     calling thread, because no device was set there;
 *   - then handles and memory are looked up: one that is destroyed, freed or foreign gives
 *     ACL_ERROR_RT_PARAM_INVALID;
 *   - a null stream is the default stream of the current context. A stream of another context gives
 *     ACL_ERROR_RT_STREAM_CONTEXT, except to aclrtDestroyStream;
 *   - times are milliseconds: -1 waits for ever, 0 only looks, less than -1 gives
 *     ACL_ERROR_RT_PARAM_INVALID.
 */
#ifndef ACL_ACL_RT_H_
#define ACL_ACL_RT_H_

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;

typedef enum {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4
} aclrtMemcpyKind;

typedef enum {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5
} aclrtMemMallocPolicy;

typedef enum {
  ACL_DDR_MEM = 0,
  ACL_HBM_MEM = 1,
  ACL_DDR_MEM_HUGE = 2,
  ACL_DDR_MEM_NORMAL = 3,
  ACL_HBM_MEM_HUGE = 4,
  ACL_HBM_MEM_NORMAL = 5
} aclrtMemAttr;

typedef enum { ACL_CALLBACK_NO_BLOCK = 0, ACL_CALLBACK_BLOCK = 1 } aclrtCallbackBlockType;

typedef enum { ACL_STREAM_STATUS_COMPLETE = 0, ACL_STREAM_STATUS_NOT_READY = 1 } aclrtStreamStatus;

typedef enum {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

static const uint32_t ACL_EVENT_SYNC = 1;
static const uint32_t ACL_EVENT_CAPTURE_STREAM_PROGRESS = 2;
static const uint32_t ACL_EVENT_TIME_LINE = 8;

typedef void (*aclrtCallback)(void *userData);

/* ---- the process and the device: no context is needed, except where said ---- */

/* The version of the interface. */
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);
/* A name for the processor; never null. */
const char *aclrtGetSocName(void);
/* One device. */
aclError aclrtGetDeviceCount(uint32_t *count);
/* ACL_HOST. */
aclError aclrtGetRunMode(aclrtRunMode *runMode);
/* Binds this thread to device 0 and its default context; counted. Another id:
 * ACL_ERROR_RT_INVALID_DEVICEID. */
aclError aclrtSetDevice(int32_t deviceId);
/* Undoes one aclrtSetDevice. At this thread's last one the thread is unbound; at the process's last
 * one the default context ends with its default stream, after the pending work of that stream.
 * Memory lives until it is freed. More often than set: ACL_ERROR_RT_CONTEXT_NULL. */
aclError aclrtResetDevice(int32_t deviceId);
/* Needs a context. */
aclError aclrtGetDevice(int32_t *deviceId);
/* Needs a context. Waits for all streams of the device; a failure stored in any of them surfaces
 * here. */
aclError aclrtSynchronizeDevice(void);

/* The newest error code of an acl function on this thread; the second forgets it. ACL_SUCCESS when
 * there is none. */
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
aclError aclrtGetLastError(aclrtLastErrLevel level);

/* ---- contexts: no context is needed, except for aclrtGetCurrentContext ---- */

/* The new context becomes current on this thread. */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);
/* Waits for the context's default stream. Threads on which it was current have none afterwards.
 * The context that aclrtSetDevice makes ends with aclrtResetDevice only. */
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);

/* ---- memory: everything needs a context, except host allocation ---- */

/* A block of device memory, aligned to 64 bytes (not with MOE_ACL_GUARD=2), not initialised.
 * A null out-pointer, size 0 or an unknown policy: ACL_ERROR_INVALID_PARAM; no memory:
 * ACL_ERROR_RT_MEMORY_ALLOCATION, and nothing is written. */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
/* Does not wait for queued work: the block leaves the program's sight at once, and the memory goes
 * when the queues have passed it. Null: ACL_ERROR_INVALID_PARAM; anything but the start of a live
 * block: ACL_ERROR_RT_PARAM_INVALID. In guard mode ACL_ERROR_RT_PARAM_INVALID also says that bytes
 * around the block were written; the block is freed then too. */
aclError aclrtFree(void *devPtr);
/* Host memory, under the same rules. */
aclError aclrtMallocHost(void **hostPtr, size_t size);
aclError aclrtFreeHost(void *hostPtr);

/* Copies `count` bytes now: in no order with any stream. In this order: count 0 succeeds; a null
 * pointer or an unknown kind gives ACL_ERROR_INVALID_PARAM; count > destMax gives
 * ACL_ERROR_RT_PARAM_INVALID; no context. Then ACL_ERROR_RT_PARAM_INVALID when a side would run
 * past the block it starts in, or when a side is no device (host) memory although the kind says so
 * (not with MOE_ACL_ALLOW_HOST_MEMORY=1), or, in guard mode, when bytes around a block were
 * written. Nothing is copied then. The sides may overlap. */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                     aclrtMemcpyKind kind);
/* The same checks at once; the copy in its turn on the stream. Device blocks are kept until then,
 * other memory is the caller's to keep. */
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream);
/* Sets `count` bytes to the low byte of `value`, under the rules of aclrtMemcpy. Host memory will
 * do too, so memory in no block is taken for the program's own, a freed block's as well; guard mode
 * stops at those. */
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream);
/* Bytes of the machine's memory, whatever the attribute. */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/* ---- streams: queues of work, each run in order on its own thread; all need a context ---- */

aclError aclrtCreateStream(aclrtStream *stream);
/* Priority and flag are hints and change nothing. */
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
/* Waits for pending work and destroys the stream. Null: ACL_ERROR_INVALID_PARAM. A failure that no
 * synchronisation has reported is reported here; the stream is destroyed all the same. */
aclError aclrtDestroyStream(aclrtStream stream);
/* Waits for everything queued before the call. Reports, once, the first failure of the stream's
 * work since the last report: ACL_ERROR_RT_AICORE_EXCEPTION; in guard mode the same code for bytes
 * written around a block. Where waiting could not end, because the stream itself waits for a
 * callback that only this thread runs: ACL_ERROR_RT_PARAM_INVALID. */
aclError aclrtSynchronizeStream(aclrtStream stream);
/* ACL_ERROR_RT_STREAM_SYNC_TIMEOUT when the time is over. */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
/* Does not wait and reports no failure. */
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);
/* Later work on the stream waits for the event's newest record; nothing when there is none. */
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/* ---- events: marks in a stream; all need a context ---- */

aclError aclrtCreateEvent(aclrtEvent *event);
/* `flag`: a union of ACL_EVENT_*; every event takes the time whatever it says. */
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
/* Safe while streams have yet to pass the event. */
aclError aclrtDestroyEvent(aclrtEvent event);
/* The event completes when the stream gets here; replaces an earlier record. */
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
/* When the stream gets here, the event is as if never recorded, unless recorded again since. */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
/* Waits for the newest record. Never recorded: ACL_ERROR_RT_PARAM_INVALID. */
aclError aclrtSynchronizeEvent(aclrtEvent event);
/* ACL_ERROR_RT_EVENT_SYNC_TIMEOUT when the time is over. */
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
/* COMPLETE when recorded and passed. */
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
/* From one to the other; both have to be complete (ACL_ERROR_RT_PARAM_INVALID). */
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);

/* ---- callbacks: run by the thread that processes a stream's reports; all need a context,
 *      except aclrtProcessReport ---- */

/* The thread `threadId`, a pthread_t as a number, will run the callbacks of the stream. One thread
 * at a time per stream; the same thread again is harmless. */
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);
/* Callbacks of the stream that have not begun are dropped: a failure that its next synchronisation
 * reports. */
aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);
/* Waits until a stream has reached a callback for this thread and runs one.
 * ACL_ERROR_RT_REPORT_TIMEOUT when the time is over; ACL_ERROR_RT_PARAM_INVALID when no stream is
 * subscribed to this thread. */
aclError aclrtProcessReport(int32_t timeout);
/* Queues a callback. With ACL_CALLBACK_BLOCK the stream goes on only when `fn` has returned. No
 * subscription: ACL_ERROR_RT_PARAM_INVALID. */
aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_RT_H_ */
