# Sets rivulet_cache: where scripts/setup keeps what it brought (scripts/common.sh says the same).
if(DEFINED ENV{RIVULET_CACHE})
  set(rivulet_cache "$ENV{RIVULET_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(rivulet_cache "$ENV{XDG_CACHE_HOME}/rivulet")
else()
  set(rivulet_cache "$ENV{HOME}/.cache/rivulet")
endif()
