// A stand-in for NVIDIA's libnvidia-ml.so.1, driven by a scenario file (docs/nvml-standin.md).
//
// Written from nvml.h's published names, numbers and layouts; it holds no code of NVIDIA's. The file that SPECCTL_NVML_SCENARIO names
// is read again whenever it changed, at the next call. What it has no line for answers as eight healthy, busy GPUs would.
// Not for threads: each process that loads it calls it from one thread at a time, as specctl's and nvitop's do.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) int
#define MAX_GPUS 16
#define MAX_RULES 256
#define MAX_PROCESSES 32
#define MAX_XIDS 1024

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10 };

static const struct { const char *name; int code; } ERRORS[] = {
    {"OK", 0}, {"UNINITIALIZED", 1}, {"INVALID_ARGUMENT", 2}, {"NOT_SUPPORTED", 3}, {"NO_PERMISSION", 4}, {"NOT_FOUND", 6},
    {"DRIVER_NOT_LOADED", 9}, {"TIMEOUT", 10}, {"FUNCTION_NOT_FOUND", 13}, {"GPU_IS_LOST", 15}, {"RESET_REQUIRED", 16},
    {"LIB_RM_VERSION_MISMATCH", 18}, {"IN_USE", 19}, {"NO_DATA", 21}, {"ARGUMENT_VERSION_MISMATCH", 25}, {"UNKNOWN", 999},
};

// Each number of a GPU: its name in a scenario and what it is without one. Units are NVML's own.
#define FIELDS(X) \
    X(gpu_percent, 87) X(memory_percent, 61) X(memory_total, 150754820096) X(memory_reserved, 605028352) X(memory_used, 120259084288) \
    X(power_mw, 612345) X(power_limit_mw, 700000) X(power_default_mw, 700000) X(sm_mhz, 1830) X(memory_mhz, 3201) X(sm_max_mhz, 1980) \
    X(temperature, 58) X(throttle, 0) X(ecc_corrected, 0) X(ecc_uncorrected, 0) X(retired_sbe, 0) X(retired_dbe, 0) X(retired_pending, 0) \
    X(remap_corrected, 0) X(remap_uncorrected, 0) X(remap_pending, 0) X(remap_failed, 0) X(mig, 0) X(pcie_tx_kb, 4000) X(pcie_rx_kb, 9000) \
    X(nvlink_tx_kib, 1000000) X(nvlink_rx_kib, 2000000)

typedef struct {
    int index;
    char uuid[64];
    int processes;
    struct { unsigned pid; unsigned long long memory; } process[MAX_PROCESSES];
#define DECLARE(field, usual) long long field;
    FIELDS(DECLARE)
} Gpu;

typedef struct { int gpu; char call[64]; char verb; int number; } Rule;  // verb: 'f'ault, 'h'ang, 'd'elay

static struct {
    int read, initialized, gpus, rules, xids, delivered;
    char driver[32];
    struct stat seen;
    Gpu gpu[MAX_GPUS];
    Rule rule[MAX_RULES];
    struct { int gpu; unsigned long long xid; } xid[MAX_XIDS];
    int registered[MAX_GPUS];
} S;

static const char *PATH, *CALLS;
enum { ANY = -1, NONE = -2 };

static void die(const char *line) {
    fprintf(stderr, "nvml stand-in: cannot read scenario line: %s\n", line);
    abort();
}

static int which(const char *word) { return !strcmp(word, "*") ? ANY : !strcmp(word, "-") ? NONE : atoi(word); }

static int code(const char *name, const char *line) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (!strcmp(ERRORS[i].name, name)) return ERRORS[i].code;
    die(line);
    return 0;
}

static void healthy(void) {
    S.gpus = 8, S.rules = S.xids = 0;
    strcpy(S.driver, "580.95.05");
    for (int i = 0; i < MAX_GPUS; i++) {
        Gpu *gpu = &S.gpu[i];
        memset(gpu, 0, sizeof *gpu);
        gpu->index = i;
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%08x-0000-4000-8000-0123456789ab", i);
#define USUAL(field, usual) gpu->field = usual;
        FIELDS(USUAL)
    }
}

static void set(Gpu *gpu, const char *key, const char *value, const char *line) {
#define SET(field, usual) if (!strcmp(key, #field)) { gpu->field = strtoll(value, NULL, 0); return; }
    FIELDS(SET)
    if (!strcmp(key, "uuid")) snprintf(gpu->uuid, sizeof gpu->uuid, "%s", value);
    else die(line);
}

static void add_rule(char verb, const char *gpu, const char *call, int number, const char *line) {
    if (S.rules == MAX_RULES) die(line);
    Rule *rule = &S.rule[S.rules++];
    rule->verb = verb, rule->gpu = which(gpu), rule->number = number;
    snprintf(rule->call, sizeof rule->call, "%s", call);
}

static void add_process(int index, unsigned pid, unsigned long long memory, const char *line) {
    if (index < 0 || index >= MAX_GPUS || S.gpu[index].processes == MAX_PROCESSES) die(line);
    int at = S.gpu[index].processes++;
    S.gpu[index].process[at].pid = pid, S.gpu[index].process[at].memory = memory;
}

static void take(const char *line) {
    char word[5][64] = {{0}};
    int n = sscanf(line, "%63s %63s %63s %63s %63s", word[0], word[1], word[2], word[3], word[4]);
    if (n < 1 || word[0][0] == '#') return;
    if (!strcmp(word[0], "gpus") && n == 2) S.gpus = atoi(word[1]) > MAX_GPUS ? MAX_GPUS : atoi(word[1]);
    else if (!strcmp(word[0], "driver") && n == 2) snprintf(S.driver, sizeof S.driver, "%.31s", word[1]);
    else if (!strcmp(word[0], "gpu") && n == 4)
        for (int i = 0; i < MAX_GPUS; i++) { if (which(word[1]) == ANY || which(word[1]) == i) set(&S.gpu[i], word[2], word[3], line); }
    else if (!strcmp(word[0], "process") && n == 4) add_process(which(word[1]), atoi(word[2]), strtoull(word[3], NULL, 0), line);
    else if (!strcmp(word[0], "fault") && n == 4) add_rule('f', word[1], word[2], code(word[3], line), line);
    else if (!strcmp(word[0], "hang") && n == 3) add_rule('h', word[1], word[2], 0, line);
    else if (!strcmp(word[0], "delay") && n == 4) add_rule('d', word[1], word[2], atoi(word[3]), line);
    else if (!strcmp(word[0], "xid") && n == 3 && S.xids < MAX_XIDS) S.xid[S.xids].gpu = which(word[1]), S.xid[S.xids++].xid = atoi(word[2]);
    else die(line);
}

static void read_scenario(void) {
    struct stat now;
    if (!S.read) PATH = getenv("SPECCTL_NVML_SCENARIO"), CALLS = getenv("SPECCTL_NVML_CALLS"), healthy();
    int first = !S.read;
    S.read = 1;
    if (!PATH || stat(PATH, &now)) return;
    if (!first && now.st_mtim.tv_nsec == S.seen.st_mtim.tv_nsec && now.st_mtim.tv_sec == S.seen.st_mtim.tv_sec &&
        now.st_ino == S.seen.st_ino && now.st_size == S.seen.st_size) return;
    FILE *file = fopen(PATH, "r");
    if (!file) return;
    char line[256];
    S.seen = now;
    healthy();
    while (fgets(line, sizeof line, file)) take(line);
    fclose(file);
    if (first) S.delivered = S.xids;  // what happened before the driver was asked to tell is not told
}

static void pause_ms(int ms) {
    struct timespec rest = {ms / 1000, (ms % 1000) * 1000000L};
    while (nanosleep(&rest, &rest) && errno == EINTR) {}
}

static void note(int gpu, const char *call) {
    char line[128];
    int file = open(CALLS, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int size = snprintf(line, sizeof line, "%d %s\n", gpu, call);
    if (file < 0 || write(file, line, (size_t)size) != size) abort();
    close(file);
}

// What every call begins with: the scenario as it is now, and what it says of this call on this GPU.
static int enter(int gpu, const char *call) {
    read_scenario();
    if (CALLS) note(gpu, call);
    for (int i = 0; i < S.rules; i++) {
        const Rule *rule = &S.rule[i];
        if ((rule->gpu != ANY && rule->gpu != gpu) || (strcmp(rule->call, "*") && strcmp(rule->call, call))) continue;
        if (rule->verb == 'd') pause_ms(rule->number);
        while (rule->verb == 'h') pause();
        if (rule->verb == 'f' && rule->number != SUCCESS) return rule->number;
        if (rule->verb == 'f') break;
    }
    return SUCCESS;
}

static int on(const Gpu *gpu, const char *call) {
    if (!S.initialized) return UNINITIALIZED;
    if (gpu < S.gpu || gpu >= S.gpu + MAX_GPUS) return INVALID_ARGUMENT;
    int said = enter(gpu->index, call);
    return said ? said : gpu->index < S.gpus ? SUCCESS : NOT_FOUND;
}

static int in(const char *call) { return S.initialized ? enter(NONE, call) : UNINITIALIZED; }

static int text(char *into, unsigned size, const char *value) { return snprintf(into, size, "%s", value) < (int)size ? SUCCESS : INSUFFICIENT_SIZE; }

#define ASK(expression) do { int said_ = (expression); if (said_) return said_; } while (0)
#define ON(gpu) ASK(on(gpu, __func__))
#define IN() ASK(in(__func__))

API nvmlInitWithFlags(unsigned flags) { (void)flags; ASK(enter(NONE, __func__)); S.initialized++; return SUCCESS; }
API nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API nvmlShutdown(void) { IN(); S.initialized--; return SUCCESS; }

__attribute__((visibility("default"))) const char *nvmlErrorString(int error) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].code == error) return ERRORS[i].name;
    return "UNKNOWN";
}

API nvmlSystemGetDriverVersion(char *into, unsigned size) { IN(); return text(into, size, S.driver); }
API nvmlSystemGetNVMLVersion(char *into, unsigned size) { IN(); char v[48]; snprintf(v, sizeof v, "13.%s", S.driver); return text(into, size, v); }
API nvmlSystemGetCudaDriverVersion(int *version) { IN(); *version = 13000; return SUCCESS; }
API nvmlSystemGetCudaDriverVersion_v2(int *version) { IN(); *version = 13000; return SUCCESS; }
API nvmlDeviceGetCount_v2(unsigned *count) { IN(); *count = S.gpus; return SUCCESS; }

API nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **gpu) {
    if (!S.initialized) return UNINITIALIZED;
    ASK(enter((int)index, __func__));
    if (index >= (unsigned)S.gpus) return INVALID_ARGUMENT;
    *gpu = &S.gpu[index];
    return SUCCESS;
}
API nvmlDeviceGetHandleByUUID(const char *uuid, Gpu **gpu) {
    IN();
    for (int i = 0; i < S.gpus; i++)
        if (!strcmp(S.gpu[i].uuid, uuid)) { *gpu = &S.gpu[i]; return enter(i, __func__); }
    return NOT_FOUND;
}

API nvmlDeviceGetIndex(Gpu *gpu, unsigned *index) { ON(gpu); *index = gpu->index; return SUCCESS; }
API nvmlDeviceGetMinorNumber(Gpu *gpu, unsigned *number) { ON(gpu); *number = gpu->index; return SUCCESS; }
API nvmlDeviceGetUUID(Gpu *gpu, char *into, unsigned size) { ON(gpu); return text(into, size, gpu->uuid); }
API nvmlDeviceGetName(Gpu *gpu, char *into, unsigned size) { ON(gpu); return text(into, size, "NVIDIA H200"); }
API nvmlDeviceGetSerial(Gpu *gpu, char *into, unsigned size) { ON(gpu); char v[24]; snprintf(v, sizeof v, "16500000%05d", gpu->index); return text(into, size, v); }
API nvmlDeviceGetCudaComputeCapability(Gpu *gpu, int *major, int *minor) { ON(gpu); *major = 9, *minor = 0; return SUCCESS; }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
API nvmlDeviceGetPciInfo_v3(Gpu *gpu, Pci *pci) {
    ON(gpu);
    memset(pci, 0, sizeof *pci);
    pci->bus = 0x18 + 0x10 * gpu->index, pci->id = 0x233510DE;
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return SUCCESS;
}

API nvmlDeviceGetUtilizationRates(Gpu *gpu, unsigned *rates) {
    ON(gpu);
    if (gpu->mig) return NOT_SUPPORTED;
    rates[0] = gpu->gpu_percent, rates[1] = gpu->memory_percent;
    return SUCCESS;
}
API nvmlDeviceGetEncoderUtilization(Gpu *gpu, unsigned *percent, unsigned *period) { ON(gpu); *percent = 0, *period = 167000; return SUCCESS; }
API nvmlDeviceGetDecoderUtilization(Gpu *gpu, unsigned *percent, unsigned *period) { ON(gpu); *percent = 0, *period = 167000; return SUCCESS; }

API nvmlDeviceGetMemoryInfo(Gpu *gpu, unsigned long long *memory) {
    ON(gpu);
    memory[0] = gpu->memory_total, memory[2] = gpu->memory_used + gpu->memory_reserved, memory[1] = memory[0] - memory[2];
    return SUCCESS;
}
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
API nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, Memory *memory) {
    ON(gpu);
    if (memory->version != (sizeof *memory | 2u << 24)) return 25;
    memory->total = gpu->memory_total, memory->reserved = gpu->memory_reserved, memory->used = gpu->memory_used;
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}
API nvmlDeviceGetBAR1MemoryInfo(Gpu *gpu, unsigned long long *bar1) { ON(gpu); bar1[0] = 262144ull << 20, bar1[2] = 1ull << 20, bar1[1] = bar1[0] - bar1[2]; return SUCCESS; }

#define NUMBER(call, field) API call(Gpu *gpu, unsigned *value) { ON(gpu); *value = (unsigned)gpu->field; return SUCCESS; }
NUMBER(nvmlDeviceGetPowerUsage, power_mw)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, power_limit_mw)
NUMBER(nvmlDeviceGetPowerManagementLimit, power_limit_mw)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, power_default_mw)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, retired_pending)

static unsigned clock_mhz(const Gpu *gpu, int kind) { return (unsigned)(kind == 2 ? gpu->memory_mhz : gpu->sm_mhz); }
API nvmlDeviceGetClockInfo(Gpu *gpu, int kind, unsigned *mhz) { ON(gpu); *mhz = clock_mhz(gpu, kind); return SUCCESS; }
API nvmlDeviceGetMaxClockInfo(Gpu *gpu, int kind, unsigned *mhz) { ON(gpu); *mhz = kind == 2 ? (unsigned)gpu->memory_mhz : (unsigned)gpu->sm_max_mhz; return SUCCESS; }
API nvmlDeviceGetTemperature(Gpu *gpu, int sensor, unsigned *celsius) { ON(gpu); (void)sensor; *celsius = (unsigned)gpu->temperature; return SUCCESS; }
typedef struct { unsigned version; int sensor, celsius; } Temperature;
API nvmlDeviceGetTemperatureV(Gpu *gpu, Temperature *temperature) { ON(gpu); temperature->celsius = (int)gpu->temperature; return SUCCESS; }
API nvmlDeviceGetFanSpeed(Gpu *gpu, unsigned *percent) { ON(gpu); (void)percent; return NOT_SUPPORTED; }
API nvmlDeviceGetDriverModel(Gpu *gpu, int *current, int *pending) { ON(gpu); (void)current; (void)pending; return NOT_SUPPORTED; }
API nvmlDeviceGetDriverModel_v2(Gpu *gpu, int *current, int *pending) { ON(gpu); (void)current; (void)pending; return NOT_SUPPORTED; }
API nvmlDeviceGetPerformanceState(Gpu *gpu, int *state) { ON(gpu); *state = 0; return SUCCESS; }
API nvmlDeviceGetPersistenceMode(Gpu *gpu, int *mode) { ON(gpu); *mode = 1; return SUCCESS; }
API nvmlDeviceGetDisplayMode(Gpu *gpu, int *mode) { ON(gpu); *mode = 0; return SUCCESS; }
API nvmlDeviceGetDisplayActive(Gpu *gpu, int *active) { ON(gpu); *active = 0; return SUCCESS; }
API nvmlDeviceGetComputeMode(Gpu *gpu, int *mode) { ON(gpu); *mode = 0; return SUCCESS; }
API nvmlDeviceGetMigMode(Gpu *gpu, unsigned *current, unsigned *pending) { ON(gpu); *current = *pending = (unsigned)gpu->mig; return SUCCESS; }
API nvmlDeviceGetMaxMigDeviceCount(Gpu *gpu, unsigned *count) { ON(gpu); *count = 7; return SUCCESS; }
API nvmlDeviceIsMigDeviceHandle(Gpu *gpu, unsigned *is) { ON(gpu); *is = 0; return SUCCESS; }

API nvmlDeviceGetCurrentClocksEventReasons(Gpu *gpu, unsigned long long *bits) { ON(gpu); *bits = (unsigned long long)gpu->throttle; return SUCCESS; }
API nvmlDeviceGetCurrentClocksThrottleReasons(Gpu *gpu, unsigned long long *bits) { ON(gpu); *bits = (unsigned long long)gpu->throttle; return SUCCESS; }

API nvmlDeviceGetTotalEccErrors(Gpu *gpu, int kind, int counter, unsigned long long *count) {
    ON(gpu);
    (void)counter;
    *count = (unsigned long long)(kind == 0 ? gpu->ecc_corrected : gpu->ecc_uncorrected);
    return SUCCESS;
}
API nvmlDeviceGetRetiredPages(Gpu *gpu, int cause, unsigned *count, unsigned long long *pages) {
    ON(gpu);
    unsigned have = (unsigned)(cause == 0 ? gpu->retired_sbe : gpu->retired_dbe), room = *count;
    *count = have;
    if (have > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++) pages[i] = 0x1000ull * (i + 1);
    return SUCCESS;
}
API nvmlDeviceGetRemappedRows(Gpu *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    ON(gpu);
    *corrected = (unsigned)gpu->remap_corrected, *uncorrected = (unsigned)gpu->remap_uncorrected;
    *pending = (unsigned)gpu->remap_pending, *failed = (unsigned)gpu->remap_failed;
    return SUCCESS;
}

API nvmlDeviceGetPcieThroughput(Gpu *gpu, int counter, unsigned *kb) { ON(gpu); *kb = (unsigned)(counter == 0 ? gpu->pcie_tx_kb : gpu->pcie_rx_kb); return SUCCESS; }
typedef struct { unsigned id, scope; int64_t at, latency; int type, said; union { double d; unsigned u; unsigned long long ull; } value; } Field;
API nvmlDeviceGetFieldValues(Gpu *gpu, int count, Field *field) {
    ON(gpu);
    for (int i = 0; i < count; i++) {
        field[i].said = field[i].id == 138 || field[i].id == 139 ? SUCCESS : NOT_SUPPORTED, field[i].type = 3;
        field[i].value.ull = (unsigned long long)(field[i].id == 138 ? gpu->nvlink_tx_kib : gpu->nvlink_rx_kib);
    }
    return SUCCESS;
}

typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } Process;
static int processes(const Gpu *gpu, unsigned *count, Process *into) {
    unsigned room = *count;
    *count = (unsigned)gpu->processes;
    if (*count > room || (*count && !into)) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++)
        into[i] = (Process){gpu->process[i].pid, gpu->process[i].memory, 0xFFFFFFFF, 0xFFFFFFFF};
    return SUCCESS;
}
API nvmlDeviceGetComputeRunningProcesses_v3(Gpu *gpu, unsigned *count, Process *into) { ON(gpu); return processes(gpu, count, into); }
API nvmlDeviceGetComputeRunningProcesses_v2(Gpu *gpu, unsigned *count, Process *into) { ON(gpu); return processes(gpu, count, into); }
API nvmlDeviceGetGraphicsRunningProcesses_v3(Gpu *gpu, unsigned *count, Process *into) { ON(gpu); (void)into; *count = 0; return SUCCESS; }
API nvmlDeviceGetGraphicsRunningProcesses_v2(Gpu *gpu, unsigned *count, Process *into) { ON(gpu); (void)into; *count = 0; return SUCCESS; }

typedef struct { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; } Usage;
API nvmlDeviceGetProcessUtilization(Gpu *gpu, Usage *into, unsigned *count, unsigned long long since) {
    ON(gpu);
    (void)since;
    unsigned room = *count;
    *count = (unsigned)gpu->processes;
    if (*count > room || (*count && !into)) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++)
        into[i] = (Usage){gpu->process[i].pid, (unsigned long long)time(NULL) * 1000000ull, (unsigned)gpu->gpu_percent, (unsigned)gpu->memory_percent, 0, 0};
    return *count ? SUCCESS : NOT_FOUND;
}

API nvmlEventSetCreate(void **set) { IN(); *set = S.registered; return SUCCESS; }
API nvmlEventSetFree(void *set) { (void)set; IN(); memset(S.registered, 0, sizeof S.registered); return SUCCESS; }
API nvmlDeviceRegisterEvents(Gpu *gpu, unsigned long long types, void *set) { ON(gpu); (void)set; (void)types; S.registered[gpu->index] = 1; return SUCCESS; }
API nvmlDeviceGetSupportedEventTypes(Gpu *gpu, unsigned long long *types) { ON(gpu); *types = 0x8; return SUCCESS; }

typedef struct { Gpu *gpu; unsigned long long type, xid; unsigned gpu_instance, compute_instance; } Event;
API nvmlEventSetWait_v2(void *set, Event *event, unsigned timeout_ms) {
    (void)set;
    IN();
    if (S.delivered == S.xids && timeout_ms) pause_ms((int)timeout_ms), read_scenario();
    while (S.delivered < S.xids) {
        int gpu = S.xid[S.delivered].gpu;
        unsigned long long xid = S.xid[S.delivered++].xid;
        if (gpu < 0 || gpu >= MAX_GPUS || !S.registered[gpu]) continue;
        *event = (Event){&S.gpu[gpu], 0x8, xid, 0xFFFFFFFF, 0xFFFFFFFF};
        return SUCCESS;
    }
    return TIMEOUT;
}
