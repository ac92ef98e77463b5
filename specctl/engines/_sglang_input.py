"""Texts by which SGLang refuses what it was told: flags, algorithms, paths, models and drafts that do not fit."""

from __future__ import annotations

import re

from specctl.engines._log_types import KnownText, TextKind


def _cause(text_id: str, pattern: str, title: str, remedy: str, titled: str | None = None) -> KnownText:
    return KnownText(
        id=text_id, kind=TextKind.CAUSE, pattern=re.compile(pattern), title=title, remedy=remedy, titled=titled
    )


INPUT_CAUSES: tuple[KnownText, ...] = (
    _cause(
        "F001",
        r"error: unrecognized arguments: (?P<flags>.{1,200})",
        "the engine does not know a flag",
        "remove the flag from the server's options or give it the name that this engine version has",
        "the engine does not know {flags}",
    ),
    _cause(
        "F002",
        r"error: ambiguous option: (?P<flag>--[\w-]{1,100})",
        "a flag is an abbreviation that fits several flags",
        "write the flag's full name (argparse accepts prefixes until a sibling flag appears)",
        "{flag} is an abbreviation that fits several flags",
    ),
    _cause(
        "F003",
        r"error: argument (?P<flag>--[\w/, -]{1,200}): (?:invalid|expected)",
        "a flag has a value that the engine does not take",
        "correct the value in the server's options; the engine's own words list the choices",
        "{flag} has a value that the engine does not take",
    ),
    _cause(
        "F004",
        r"Unknown speculative algorithm name: (?P<name>[\w.-]{1,80})",
        "this engine does not know the algorithm",
        "use an engine profile whose build has the algorithm (`specctl inventory show` names the profile in use)",
        "this engine does not know the algorithm {name}",
    ),
    _cause(
        "F005",
        r"(?P<algo>[A-Z_]{2,40}) speculative decoding is not supported by",
        "the algorithm does not run on this device",
        "deploy on a device that the algorithm supports, or use algo none",
        "{algo} does not run on this device",
    ),
    _cause(
        "F006",
        r"requires setting --speculative-draft-model-path|object has no attribute 'hot_token_id'",
        "the algorithm needs a draft and none was given",
        "name the server's draft in the inventory (without one, EAGLE3 loads the target as its own draft and dies later)",
    ),
    _cause(
        "F007",
        r"--speculative-dflash-block-size to be positive"
        r"|--speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ"
        r"|--speculative-draft-(?:window|sink)-size must be|--speculative-draft-sink-size requires ",
        "the block size contradicts another setting",
        "set only block_size, to a positive number no larger than the draft window",
    ),
    _cause(
        "F008",
        r"only supports pp_size == 1|with dp attention requires --enable-dp-lm-head",
        "the algorithm does not work with this kind of parallelism",
        "use pipeline size 1, and with data-parallel attention add --enable-dp-lm-head",
    ),
    _cause(
        "F009",
        r"Speculative algorithm (?P<name>[\w.-]{1,80}) does not support overlap scheduling",
        "the algorithm needs the overlap scheduler off",
        "add --disable-overlap-schedule to what the engine profile implies for this algo",
        "{name} needs the overlap scheduler off",
    ),
    _cause(
        "F010",
        r"Repo id must be in the form .{1,60}?: '(?P<path>[^']{1,300})'"
        r"|Incorrect path_or_model_id: '(?P<other>[^']{1,300})'",
        "a model's folder does not exist on the host",
        "check the path of target and draft on the host (the engine takes a missing folder for a name on the hub)",
    ),
    _cause(
        "F011",
        r"We couldn't connect to 'https?://[^']{1,120}' to load",
        "the model is not on the host and the hub cannot be reached",
        "copy the model to the host and give its folder, or allow the host to reach the hub",
    ),
    _cause(
        "F013",
        r"config file at '(?P<path>[^']{1,300})' is not a valid JSON file",
        "a model's config.json is damaged",
        "copy the model again and compare checksums",
        "{path} is not valid JSON",
    ),
    _cause(
        "F014",
        r"Cannot find any model weights with `?(?P<path>[^`]{1,300})",
        "a model's folder holds no weights",
        "copy the weight files to the host; the folder has a config but no safetensors",
        "no weights in {path}",
    ),
    _cause(
        "F015",
        r"SafetensorError: |invalid load key, '|PytorchStreamReader failed",
        "a weight file is damaged or cut short",
        "copy the model again and compare sizes and checksums (a copy that was interrupted looks like this)",
    ),
    _cause(
        "F016",
        r"'(?P<arch>[\w.-]{1,120})' is not a registered model|Model architectures \[[^\]]{1,200}\] are not supported",
        "this engine does not know the model's architecture",
        "use an engine version that supports the model, or correct `architectures` in its config.json",
    ),
    _cause(
        "F017",
        r"Couldn't instantiate the backend tokenizer|Can't load tokenizer for|Failed to load the tokenizer",
        "the model's tokenizer cannot be loaded",
        "copy the tokenizer files (tokenizer.json, tokenizer_config.json) beside the weights",
    ),
    _cause(
        "F018",
        r"User-specified context_length \((?P<asked>\d{1,12})\) is greater than the derived context_length "
        r"\((?P<has>\d{1,12})\)",
        "the context length is longer than the model's own",
        "lower --context-length to what the model supports",
        "context length {asked} is longer than the model's {has}",
    ),
    _cause(
        "F028",
        r"DFLASH target_layer_ids contains an out-of-range|mask_token_id is outside the target vocab size"
        r"|DFlash layer selection requires|DFLASH config mismatch|DFLASH requires resolving a mask token id",
        "the draft does not fit the target",
        "use the draft that was trained for this target; layer ids, mask token and vocabulary must match",
    ),
    _cause(
        "F031",
        r"the total number of ranks \(|(?:must|should) be divisible by .{0,60}(?:tp|tensor)|is not divisible by .{0,40}tp",
        "the model cannot be split over that many ranks",
        "set --tp-size to a number that divides the model's heads and that the host has devices for",
    ),
    _cause(
        "F027",
        r"FlashAttention v\d Backend requires|\d active drivers \(\[\]\)|BatchPrefillWithRaggedKVCacheWrapper' is not defined"
        r"|is not supported in \w{1,20} attention backend|attention backend .{1,60} is not supported",
        "the attention backend does not run on this device",
        "choose another --attention-backend for this hardware (triton runs on most GPUs)",
    ),
)
